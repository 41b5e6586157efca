"""Wire protocols: how a provider's API is asked for a text, and what the events of its answer say."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from cotrail.core.generation import ThoughtsKind
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.prompts import Prompt
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.calls import CallPiece
from cotrail.engines.language_models.served.tokenizer import Dialect
from cotrail.engines.language_models.token_counts import TokenCounts

Finish = Literal["done", "end", "stop", "length", "refused"]
"""Why a server ended a text: the model's end (`end`), a stop string that it was told (`stop`), one of these two
(`done`), the most tokens, or a refusal of the model or the provider."""


class Refused(Exception):  # noqa: N818 - control flow: made the error that the status means
    """The server reports an error in the middle of a stream; status: that of HTTP, or what comes closest."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Order(Struct, frozen=True, kw_only=True):
    """A generation as a server is asked for it.

    prompt: as it is packed; text: the same as text or tokens, for completions. request: with the tokens of thoughts in
    its `max_tokens`. streams: whether the answer is a stream of events.
    """

    endpoint: Endpoint
    dialect: Dialect
    prompt: Prompt
    request: GenerationRequest
    text: str | list[int] = ""
    streams: bool = True


class Delta(Struct, frozen=True, kw_only=True):
    """What one event adds to an answer, or a whole answer.

    text: None where the event isn't about the text. logprobs: of the text's tokens, as the server wrote them.
    counts: of the whole answer so far. finish: None until the text ends; ended: whether no event follows.
    """

    text: str | None = None
    thought: str = ""
    calls: tuple[CallPiece, ...] = ()
    counts: TokenCounts | None = None
    logprobs: Any = None
    finish: Finish | None = None
    ended: bool = False
    served_by: str = ""


class AnswerReader(Protocol):
    """Reads one answer; a state machine of its own for each."""

    def read(self, data: str) -> Delta:
        """One event of a stream. Raises Refused, TransientStepError."""

    def whole(self, answer: Mapping[str, Any]) -> Delta:
        """An answer that is no stream. Raises Refused, TransientStepError."""

    @property
    def carried(self) -> dict[str, Any]:
        """Fields of the model's message that later prompts may hand back, see `Generated`."""

    @property
    def thoughts_are(self) -> ThoughtsKind:
        """What the thoughts are, of which it has read at least one."""


class WireProtocol(Protocol):
    """One API of a provider's."""

    def path(self, endpoint: Endpoint, *, streams: bool) -> str:
        """Where a request is sent to, behind the URL of the endpoint."""

    def headers(self, key: str) -> dict[str, str]:
        """The headers of requests, with the key, which is empty where the server needs none."""

    def body(self, order: Order) -> dict[str, Any]:
        """The request. Raises StepError where the server can't do what is asked for."""

    def reader(self) -> AnswerReader:
        """A reader of one answer."""

    def stop_strings(self, endpoint: Endpoint, request: GenerationRequest) -> tuple[str, ...]:
        """The stop strings that the server is told; all others are watched for in the text."""
