"""What the events of a server's answer say, whatever protocol it speaks."""

import json
from collections.abc import Collection, Mapping
from typing import Any, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct

from cotrail.common.printable_text import storable
from cotrail.core.generation import ThoughtsKind
from cotrail.engines.language_models.served.event_loop import CallPiece
from cotrail.engines.language_models.token_counts import TokenCounts
from cotrail.errors import TransientStepError


def bearer(key: str) -> dict[str, str]:
    """The header that holds a key; none where there is none."""
    return {"Authorization": f"Bearer {key}"} if key else {}


T = TypeVar("T")


def decoded(data: str) -> Any:
    """The JSON of an event; raises TransientStepError where it is none."""
    try:
        return json.loads(data)  # msgspec's own decoder rejects lone surrogates
    except (ValueError, RecursionError) as error:
        raise TransientStepError(f"the server's answer isn't in the form of its API: {error}") from error


def event_of(content: Any, types: Collection[str], form: type[T]) -> T:
    """An event of a stream, by its `type`; one of no field where it is of another type than these.

    Raises TransientStepError where the content is of another form.
    """
    is_known = not isinstance(content, dict) or content.get("type") in types
    return converted(content if is_known else {}, form)


def encoded(content: Any) -> str:
    """The JSON of what a server wrote, whose strings may have lone surrogates."""
    return storable(json.dumps(content, ensure_ascii=False, separators=(",", ":")))


def converted(content: Any, form: type[T]) -> T:
    """A value of that type; raises TransientStepError where the content is of another form."""
    try:
        return msgspec.convert(content, form)
    except (ValueError, RecursionError) as error:
        raise TransientStepError(f"the server's answer isn't in the form of its API: {error}") from error


Finish = Literal["done", "end", "stop", "length", "refused"]
"""Why a server ended a text: the model's end (`end`), a stop string that it was given (`stop`), one of these two
(`done`), the most tokens, or a refusal of the model or the provider."""


class Refused(Exception):  # noqa: N818 - control flow: made the error that the status means
    """The server reports an error in the middle of a stream; status: that of HTTP, or what comes closest.

    kinds: its type or code, and what else it says of it; pause: the seconds that it asks to wait, if it does.
    """

    def __init__(self, status: int, message: str, *kinds: str, pause: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kinds = tuple(filter(None, kinds))
        self.pause = pause


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


def finished(delta: Delta) -> Delta:
    """A whole answer; raises TransientStepError where it doesn't say why its text ended."""
    if delta.finish is None:
        raise TransientStepError("the server's answer doesn't say why its text ended")
    return delta


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
