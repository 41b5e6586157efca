"""What the server writes, while it is being written."""

import json
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.storable_text import storable
from cotrail.core.generation import Until
from cotrail.core.recordable import MOST_CHARACTERS
from cotrail.engines.language_models.ending import kept, watch
from cotrail.engines.language_models.endpoint import Api
from cotrail.engines.language_models.openai.refusals import error_message
from cotrail.engines.language_models.result import Tokens
from cotrail.errors import TransientStepError, UnrecordableError

END = "[DONE]"

_INTERNAL_ERROR = 500


class Refused(Exception):  # noqa: N818 - control flow: made the error that the status means
    """The server says in the middle of a stream that something went wrong."""

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
    def counts(self) -> Tokens:
        cached = self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details else None
        return Tokens(prompt=self.prompt_tokens, cached=cached or 0, generated=self.completion_tokens)


class _Timings(Struct, frozen=True):
    """llama.cpp's: tokens taken from the cache, read, and written."""

    cache_n: int = 0
    prompt_n: int = 0
    predicted_n: int = 0

    @property
    def counts(self) -> Tokens:
        return Tokens(prompt=self.cache_n + self.prompt_n, cached=self.cache_n, generated=self.predicted_n)


class _Chunk(Struct, frozen=True):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    timings: _Timings | None = None
    error: Any = None


class Stream:
    """Takes the server's events and says when it is enough.

    White space before the first word of a chat's message is layout and no part of the text: who goes on with a text and
    begins with a line break has ended it, and who answers a message hasn't.

    counts: None where the server didn't say; then there is one token in a piece, as a rule.
    logprobs: what the server said of the first piece's probability, and of others in its place; None for nothing.
    """

    def __init__(self, until: Until, api: Api = "completions") -> None:
        self.text = ""
        self.pieces = 0
        self.counts: Tokens | None = None
        self.logprobs: Any = None
        self._until = until
        self._chat = api == "chat"
        self._begun = not self._chat
        self._ended = False
        self._enough = watch(until)

    def take(self, data: str) -> bool:
        """Takes an event; true once what was asked for is whole. Raises Refused, TransientStepError."""
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
        """Raises TransientStepError where the server went away before it was done."""
        if not self._ended:
            raise TransientStepError(f"the server broke off after {self.text!r}")

    def kept(self) -> str:
        """What the step asked for, of everything that was written."""
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
        return msgspec.convert(json.loads(data), _Chunk)  # msgspec's own decoder refuses lone surrogates
    except (ValueError, RecursionError) as error:
        raise TransientStepError(f"the server wrote what isn't OpenAI's protocol: {error}") from error
