"""Error responses of a server, as errors of steps."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.engines.language_models.served.refused_fields import located, refused_field, setting_for
from cotrail.engines.server_address import ServerAddress
from cotrail.errors import (
    BlockedError,
    BusyError,
    CotrailError,
    PromptTooLongError,
    QuotaError,
    StepError,
    TransientStepError,
    UnavailableError,
)

OVERLOADED = 529
"""Anthropic's status of a server that has too much to do."""

BUSY = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
    OVERLOADED,
)
"""Statuses of a server, or a proxy before it, that takes no requests at the moment, whatever they ask for."""

ATTEMPTS = 3
"""Attempts of a request to a server that is away or busy, before its step is given back until the server is
available."""

_TOO_LONG = re.compile("context[_ ](?:length|size|window)|exceed_context|maximum context", re.IGNORECASE)


_CROWDED = (HTTPStatus.TOO_MANY_REQUESTS, OVERLOADED)
"""Statuses of a server that isn't away, but takes no further requests of this account's."""

_QUOTA = ("insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active")
"""Codes of an account that is used up."""

_OF_THE_REQUEST = re.compile("logprob|parameter|moderat|flagged|content policy|safety", re.IGNORECASE)
"""What a 403 is about that isn't about the key."""

_REFUSED_FIELDS = ("unsupported_parameter", "unsupported_value")


class Reported(Struct, frozen=True):
    """What an error response says: its message, its type and code, and the field of the request that it is about."""

    message: str
    kinds: tuple[str, ...] = ()
    param: str = ""


def step_error(
    endpoint: ServerAddress, status: int, reported: Reported | str, wait: float | None = None
) -> CotrailError:
    """The step's error for a status other than success; wait: the pause that the server asks for, in seconds."""
    said = Reported(reported) if isinstance(reported, str) else reported
    sentence = f"{endpoint.url} answered {status}: {said.message}"
    if status == HTTPStatus.PAYMENT_REQUIRED or set(said.kinds) & set(_QUOTA):
        return QuotaError(
            f"{sentence}; the account is used up, and waiting doesn't help: add to it, then `cotrail resume RUN`"
        )
    if status in _CROWDED or (status == HTTPStatus.SERVICE_UNAVAILABLE and wait is not None):
        return BusyError(sentence, wait)
    if status in BUSY:
        return UnavailableError(sentence, wait)
    return _lasting(endpoint, status, said, sentence)


def _lasting(endpoint: ServerAddress, status: int, said: Reported, sentence: str) -> CotrailError:
    """The error for a status that waiting doesn't change."""
    field = refused_field(said.param, said.message)
    match status:
        case 400 | 403 | 422 if field and not _TOO_LONG.search(said.message):
            return BlockedError(_field_refused(sentence, field))
        case 403 if _OF_THE_REQUEST.search(said.message):
            return StepError(sentence)
        case 401 | 403:
            return BlockedError(_key_wanted(endpoint, status))
        case _ if 300 <= status < 400:
            return BlockedError(
                f"{endpoint.url} answered {status}, a redirect, which isn't followed: write the address that it leads "
                "to into the list of models, start the workers again, then `cotrail resume RUN`"
            )
        case 408:
            return TransientStepError(sentence)
        case 400 | 422 if set(said.kinds) & set(_REFUSED_FIELDS):
            return BlockedError(_field_refused(sentence, ""))
        case _ if 400 <= status < 500:
            is_too_long = _TOO_LONG.search(said.message)
            return PromptTooLongError(f"{sentence}; {endpoint.for_long_texts}") if is_too_long else StepError(sentence)
    return TransientStepError(sentence)


def _field_refused(sentence: str, field: str) -> str:
    return f"{sentence}; {setting_for(field)}, start the workers again and submit the run anew"


_STATUSES = {
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "timeout_error": 504,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "overloaded_error": 529,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "request_too_large": 413,
}
"""Status by the type of an error, which a stream that has begun reports in place of a status."""


def status_meant(kind: str) -> int:
    """The status that the type of an error stands for; 500 where it isn't known."""
    return _STATUSES.get(kind, HTTPStatus.INTERNAL_SERVER_ERROR)


def message_in(body: bytes) -> str:
    """The error message in a response, in OpenAI's form or another."""
    return reported_in(body).message


def reported_in(body: bytes) -> Reported:
    """What an error response says, in OpenAI's form or another."""
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Reported(body.decode(errors="replace").strip() or "nothing further")
    error = content.get("error", content) if isinstance(content, Mapping) else content
    fields = error if isinstance(error, Mapping) else {}
    kinds = tuple(str(fields[name]) for name in ("code", "type", "status") if fields.get(name))
    return Reported(error_message(content), kinds, str(fields.get("param") or "") or located(content))


def error_message(content: Any) -> str:
    """The message of a decoded response, or all of it where no field stands out."""
    while isinstance(content, Mapping):
        inner = next((content[key] for key in ("error", "message", "detail") if content.get(key)), None)
        if inner is None:
            break
        content = inner
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def _key_wanted(endpoint: ServerAddress, status: int) -> str:
    if endpoint.key_variable is None:
        todo = "name the environment variable that holds its key as key_variable in the list of models"
    else:
        todo = f"set the environment variable {endpoint.key_variable} to a key that it takes"
    return f"{endpoint.url} answered {status}: {todo}, start the workers again, then `cotrail resume RUN`"
