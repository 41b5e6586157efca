"""Token counts: of a generation, and of the parts that prompts are packed from again and again."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

CACHED_COUNTS = 4096
"""The most token counts of prompt parts that are kept."""

LONGEST_PART = 20_000
"""Characters beyond which a text is a whole prompt, which hardly occurs twice: its count isn't kept."""


class TokenCounts(Struct, frozen=True):
    """Token counts of a generation, as in `Generated`.

    generated_tokens: with thoughts, which are `thought_tokens` of them; thought_estimated: whether that is an estimate.
    """

    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    thought_tokens: int = 0
    cache_written_tokens: int = 0
    estimated: bool = False
    thought_estimated: bool = False


class LlamaCppTimings(Struct, frozen=True):
    """llama.cpp's token counts, in its own words: taken from the prefix cache, read, and written."""

    cache_n: int = 0
    prompt_n: int = 0
    predicted_n: int = 0

    @property
    def counts(self) -> TokenCounts:
        """The same counts under our names; the prompt includes its cached part."""
        return TokenCounts(
            prompt_tokens=self.cache_n + self.prompt_n,
            cached_prompt_tokens=self.cache_n,
            generated_tokens=self.predicted_n,
        )


def cached_count(count: Callable[[str], int]) -> Callable[[str], int]:
    """The same count, with a cache for parts of prompts."""
    count_part = lru_cache(maxsize=CACHED_COUNTS)(count)
    return lambda text: count(text) if len(text) > LONGEST_PART else count_part(text)


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


def count_words(text: str) -> int:
    """The tokens of a text where each word is one."""
    return len(text.split())


def estimated_tokens(text: str) -> int:
    """One token for every three ASCII characters, and one for each other character."""
    others = sum(not character.isascii() for character in text)
    return -(-(len(text) - others) // CHARACTERS_A_TOKEN) + others
