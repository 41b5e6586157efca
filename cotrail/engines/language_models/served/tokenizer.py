"""Token counts: by the server's own tokenizer where it offers one, otherwise estimated."""

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from cotrail.engines.language_models.token_counts import cached_count

Dialect = Literal["openai", "llama.cpp", "vllm"]
"""The server's extensions of OpenAI's protocol, recognized by its tokenizer's response; SGLang responds like vLLM."""

CHARACTERS_A_TOKEN = 3
"""ASCII characters estimated as one token; English has more than four, so that a quarter of the context stays empty."""


class Tokenized(Struct, frozen=True):
    """A tokenizer's response: vLLM's includes the count, llama.cpp's has the tokens alone."""

    tokens: list[int]
    count: int | None = None


class Counter:
    """Counts tokens, and detects the server's dialect on the way.

    ask: sends a text to the server's tokenizer, and whether it begins a prompt; returns None where it has none.
    """

    def __init__(self, ask: Callable[[str, bool], Tokenized | None]) -> None:
        self._ask = ask
        self._dialect: Dialect | None = None
        self.count = cached_count(self._count)

    @property
    def dialect(self) -> Dialect:
        """The dialect, known after the first count."""
        return self._dialect or "openai"

    def tokens(self, pieces: Sequence[str]) -> list[int] | None:
        """The tokens of a prompt whose pieces are tokenized each by itself; None where the server has no tokenizer."""
        answers = [self._ask(piece, place == 0) for place, piece in enumerate(pieces)]
        return None if None in answers else [token for answer in answers if answer for token in answer.tokens]

    def _count(self, text: str) -> int:
        # An earlier count has shown that the server has no tokenizer.
        if self._dialect == "openai":
            return estimated_tokens(text)
        answer = self._ask(text, True)
        if answer is None:
            self._dialect = "openai"
            return estimated_tokens(text)
        self._dialect = "llama.cpp" if answer.count is None else "vllm"
        return len(answer.tokens)


def estimated_tokens(text: str) -> int:
    """One token for every three ASCII characters, and one for each other character."""
    others = sum(not character.isascii() for character in text)
    return -(-(len(text) - others) // CHARACTERS_A_TOKEN) + others
