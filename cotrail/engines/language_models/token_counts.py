"""Cache of token counts, because prompts are packed from the same parts again and again."""

from collections.abc import Callable
from functools import lru_cache

CACHED_COUNTS = 4096
"""The most token counts of prompt parts that are kept."""

LONGEST_PART = 20_000
"""Characters beyond which a text is a whole prompt, which hardly occurs twice: its count isn't kept."""


def cached_count(count: Callable[[str], int]) -> Callable[[str], int]:
    """The same count, with a cache for parts of prompts."""
    count_part = lru_cache(maxsize=CACHED_COUNTS)(count)
    return lambda text: count(text) if len(text) > LONGEST_PART else count_part(text)
