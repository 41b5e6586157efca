"""The stream of events that a server writes for one generation."""

import json
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.storable_text import storable
from cotrail.core.generation import Until
from cotrail.core.results import MOST_CHARACTERS
from cotrail.engines.language_models.endpoint import Api
from cotrail.engines.language_models.openai.refusals import error_message
from cotrail.engines.language_models.result import LlamaCppTimings, TokenCounts
from cotrail.engines.language_models.stop_conditions import kept, stop_condition
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


class _Choice(Struct, frozen=True):
    """A piece: `text` of a completion, `delta` of a chat."""

    text: str | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None
    logprobs: Any = None

    @property
    def piece(self) -> str:
        return self.text or (self.delta and self.delta.content) or ""


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


class OpenAIStream:
    """Takes the server's events until the generation is complete.

    White space before the first word of a chat message is layout and not part of the text. A completion that begins
    with a line break has ended its line; a chat message that does hasn't.

    counts: None where the server didn't report them; then a piece usually is one token.
    logprobs: the log probabilities of the first piece, None where the server didn't report them.
    """

    def __init__(self, until: Until, api: Api = "completions") -> None:
        self.text = ""
        self.pieces = 0
        self.counts: TokenCounts | None = None
        self.logprobs: Any = None
        self._until = until
        self._chat = api == "chat"
        self._begun = not self._chat
        self._ended = False
        self._enough = stop_condition(until)

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
        said = chunk.usage or chunk.timings
        self.counts = said.counts if said else self.counts
        return self._add(chunk.choices[0]) if chunk.choices else False

    def check(self) -> None:
        """Raises TransientStepError where the server disconnected before it was done."""
        if not self._ended:
            raise TransientStepError(f"the server broke off after {self.text!r}")

    def kept(self) -> str:
        """The part of the text that the step asked for."""
        return kept(self.text.lstrip() if self._chat else self.text, self._until)

    def _add(self, choice: _Choice) -> bool:
        piece = storable(choice.piece)
        self.logprobs = self.logprobs or choice.logprobs
        self.text += piece
        if len(self.text) > MOST_CHARACTERS:
            raise UnrecordableError(
                f"the server wrote more than {MOST_CHARACTERS:,} characters; look at what it writes"
            )
        self.pieces += bool(piece)
        if not self._begun:
            piece = piece.lstrip()
            self._begun = bool(piece)
        enough = self._enough(piece)
        self._ended = self._ended or enough or choice.finish_reason is not None
        return enough


def _refused(error: Any) -> Refused:
    code = error.get("code") if isinstance(error, dict) else None
    return Refused(code if isinstance(code, int) else _INTERNAL_ERROR, error_message(error))


def _chunk(data: str) -> _Chunk:
    try:
        return msgspec.convert(json.loads(data), _Chunk)  # msgspec's own decoder rejects lone surrogates
    except (ValueError, RecursionError) as error:
        raise TransientStepError(f"the server wrote what isn't OpenAI's protocol: {error}") from error
