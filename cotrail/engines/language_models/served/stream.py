"""The stream of events that a server writes for one generation."""

import json
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from cotrail.common.storable_text import storable
from cotrail.core.calls import Call
from cotrail.core.generation import Ended, Until
from cotrail.core.results import MOST_CHARACTERS
from cotrail.engines.language_models.growing_text import GrowingText
from cotrail.engines.language_models.served.calls import CallPiece, Calls
from cotrail.engines.language_models.served.refusals import error_message
from cotrail.engines.language_models.stop_conditions import kept, stop_condition, why_ended
from cotrail.engines.language_models.token_counts import LlamaCppTimings, TokenCounts
from cotrail.errors import TransientStepError, UnrecordableError

END = "[DONE]"

_INTERNAL_ERROR = 500


class Refused(Exception):  # noqa: N818 - control flow: made the error that the status means
    """The server reports an error in the middle of a stream."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class _Delta(Struct, frozen=True):
    content: str | None = None
    tool_calls: tuple[CallPiece, ...] | None = None


class _Choice(Struct, frozen=True):
    """A piece: `text` of a completion, `delta` of a chat.

    stop_reason: the stop string that vLLM met, None for the model's end.
    """

    text: str | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None
    stop_reason: int | str | UnsetType | None = UNSET
    logprobs: Any = None

    @property
    def piece(self) -> str:
        return self.text or (self.delta and self.delta.content) or ""

    @property
    def is_text(self) -> bool:
        """Whether it is about the text, and not about reasoning that stands beside it, or about calls."""
        return self.text is not None or (self.delta is not None and self.delta.content is not None)

    @property
    def calls(self) -> tuple[CallPiece, ...]:
        return (self.delta and self.delta.tool_calls) or ()


class _Details(Struct, frozen=True):
    cached_tokens: int | None = None


class _Usage(Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None

    @property
    def counts(self) -> TokenCounts:
        cached = self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details else None
        return TokenCounts(prompt=self.prompt_tokens, cached=cached or 0, generated=self.completion_tokens)


class _Chunk(Struct, frozen=True):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    timings: LlamaCppTimings | None = None
    error: Any = None


class ServerStream:
    """Takes the server's events until the generation is complete.

    White space before the first word of a new chat message is layout and not part of the text, unless the text is asked
    for verbatim. A completion that begins with a line break has ended its line; a chat message that does hasn't.

    opens: whether the text opens a chat message.
    echo: what the server may repeat before it continues, which is no part of the text either.
    knows_stop: whether the server was told the stop strings, which then don't stand in its text.
    counts: None where the server didn't report them; then a piece usually is one token.
    events: the text of each event, and the log probabilities that the server reported with it, or None.
    """

    def __init__(
        self, until: Until, stop: tuple[str, ...] = (), *, opens: bool = False, echo: str = "", knows_stop: bool = False
    ) -> None:
        self._written = GrowingText()
        self.pieces = 0
        self.counts: TokenCounts | None = None
        self.events: list[tuple[str, Any]] = []
        self._until = until
        self._stop = stop
        self._knows_stop = knows_stop
        self._strips = opens and until != "stop"
        self._begun = not self._strips
        self._echo = echo
        self._echoed = GrowingText()
        self._calls = Calls()
        self._last = _Choice()
        self._ended = False
        self._enough = stop_condition(until, stop)

    def take(self, data: str) -> bool:
        """Takes an event; returns True once the part that was asked for is complete.

        Raises Refused, TransientStepError.
        """
        if data == END:
            self._ended = True
            return False
        chunk = _chunk(data)
        if chunk.error is not None:
            raise _refused(chunk.error)
        usage = chunk.usage or chunk.timings
        self.counts = usage.counts if usage else self.counts
        return self._add(chunk.choices[0]) if chunk.choices else False

    def check(self) -> None:
        """Raises TransientStepError where the server disconnected before it was done."""
        if not self._ended:
            raise TransientStepError(f"the server broke off after {self.text!r}")

    @property
    def text(self) -> str:
        """What was written so far."""
        return self._written.text

    def kept(self) -> str:
        """The part of the text that the step asked for."""
        return kept(self._shown, self._until, self._stop)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tools that the model called; none where the text ended otherwise, since they may then not be whole."""
        return self._calls.whole() if self.ending()[0] == "calls" else ()

    @property
    def logprobs(self) -> Any:
        """The first log probabilities that the server reported, None where it reported none."""
        return next((logprobs for _, logprobs in self.events if logprobs), None)

    def ending(self) -> tuple[Ended, str]:
        """Why the text ended, and before which stop string, as in `Generated`.

        Servers other than vLLM's don't say whether the model ended the text or a stop string that they were told; the
        latter is assumed.
        """
        return why_ended(self._shown, self._until, self._stop, self._otherwise)

    @property
    def _otherwise(self) -> Ended:
        """Why it ended if not by what was asked for."""
        if self._last.finish_reason == "length":
            return "length"
        if self._calls.whole():
            return "calls"
        return "until" if self._knows_stop and isinstance(self._last.stop_reason, str | UnsetType) else "end"

    @property
    def _shown(self) -> str:
        return self.text.lstrip() if self._strips else self.text

    def _add(self, choice: _Choice) -> bool:
        piece = self._without_echo(storable(choice.piece), is_last=choice.finish_reason is not None)
        if choice.is_text:
            self.events.append((piece, choice.logprobs))
        self._written.add(piece)
        for call in choice.calls:
            self._calls.take(call)
        if self._written.characters + self._calls.characters > MOST_CHARACTERS:
            raise UnrecordableError(
                f"the server wrote more than {MOST_CHARACTERS:,} characters; look at what it writes"
            )
        self.pieces += bool(piece)
        if not self._begun:
            piece = piece.lstrip()
            self._begun = bool(piece)
        enough = self._enough(piece)
        if choice.finish_reason is not None:
            self._last = choice
        self._ended = self._ended or enough or choice.finish_reason is not None
        return enough

    def _without_echo(self, piece: str, *, is_last: bool) -> str:
        if not self._echo:
            return piece
        before = self._echoed.characters
        self._echoed.add(piece)
        if not is_last and self._echoed.characters < len(self._echo) and self._echo.startswith(piece, before):
            return ""
        piece, self._echo = self._echoed.text.removeprefix(self._echo), ""
        return piece


def _refused(error: Any) -> Refused:
    code = error.get("code") if isinstance(error, dict) else None
    return Refused(code if isinstance(code, int) else _INTERNAL_ERROR, error_message(error))


def _chunk(data: str) -> _Chunk:
    try:
        return msgspec.convert(json.loads(data), _Chunk)  # msgspec's own decoder rejects lone surrogates
    except (ValueError, RecursionError) as error:
        raise TransientStepError(f"the server wrote what isn't OpenAI's protocol: {error}") from error
