"""Token counts: of a generation, and of the parts that prompts are packed from again and again."""

from collections.abc import Callable
from functools import lru_cache

from msgspec import Struct

CACHED_COUNTS = 4096
"""The most token counts of prompt parts that are kept."""

LONGEST_PART = 20_000
"""Characters beyond which a text is a whole prompt, which hardly occurs twice: its count isn't kept."""


class TokenCounts(Struct, frozen=True):
    """Token counts of a generation, as in `Generated`.

    generated: with thoughts, of which `thought` is the number; thought_estimated: whether that is an estimate.
    """

    prompt: int
    cached: int
    generated: int
    drafted: int = 0
    accepted: int = 0
    thought: int = 0
    cache_written: int = 0
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
        return TokenCounts(prompt=self.cache_n + self.prompt_n, cached=self.cache_n, generated=self.predicted_n)


def cached_count(count: Callable[[str], int]) -> Callable[[str], int]:
    """The same count, with a cache for parts of prompts."""
    count_part = lru_cache(maxsize=CACHED_COUNTS)(count)
    return lambda text: count(text) if len(text) > LONGEST_PART else count_part(text)
