"""Lines of a batch's results."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from cotrail.core.ports.batches import BatchAnswer, Unanswered
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.refusals import reported_in, step_error
from cotrail.errors import TransientStepError, UnavailableError


class Response(Struct, frozen=True):
    """A response within a line."""

    status_code: int = 0
    body: Raw = Raw(b"null")


class LineFailure(Struct, frozen=True):
    """Why a line has no response."""

    code: str | None = None
    message: str | None = None


class ResultLine(Struct, frozen=True):
    """A line in the form that OpenAI's and Mistral's files have."""

    custom_id: str = ""
    response: Response | None = None
    error: LineFailure | str | None = None


def read_line(endpoint: Endpoint, line: bytes) -> BatchAnswer | Unanswered:
    """What became of a line of OpenAI's or Mistral's."""
    read = decoded(line, ResultLine, ResultLine())
    if read.response is not None:
        return answered(endpoint, read.custom_id, read.response.status_code, read.response.body)
    error = read.error
    return Unanswered(read.custom_id, str(error.message or error.code if isinstance(error, LineFailure) else error))


def decoded(line: bytes, type_: Any, otherwise: Any) -> Any:
    """A line as that type; otherwise: what a line that can't be read counts as, which is one that nobody asked for."""
    try:
        return msgspec.json.decode(line, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return otherwise


def answered(endpoint: Endpoint, line: str, status: int, body: Raw) -> BatchAnswer | Unanswered:
    """What became of a line that the provider answered with a status: one that passes may be asked again."""
    content = bytes(body)
    if 200 <= status < 300:
        return BatchAnswer(line, 200, content.decode())
    reported = reported_in(content)
    if isinstance(step_error(endpoint, status, reported), UnavailableError | TransientStepError):
        return Unanswered(line, f"{status}: {reported.message}")
    return BatchAnswer(line, status, content.decode())
