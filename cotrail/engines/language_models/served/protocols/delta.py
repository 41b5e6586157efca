"""What the events of a server's answer say, whatever protocol it speaks."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from cotrail.core.generation import ThoughtsKind
from cotrail.engines.language_models.served.calls import CallPiece
from cotrail.engines.language_models.token_counts import TokenCounts

Finish = Literal["done", "end", "stop", "length", "refused"]
"""Why a server ended a text: the model's end (`end`), a stop string that it was told (`stop`), one of these two
(`done`), the most tokens, or a refusal of the model or the provider."""


class Refused(Exception):  # noqa: N818 - control flow: made the error that the status means
    """The server reports an error in the middle of a stream; status: that of HTTP, or what comes closest.

    kind: its type or code.
    """

    def __init__(self, status: int, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kinds = (kind,) if kind else ()


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
