"""Token counts that are remembered, because prompts are packed from the same parts again and again."""

from collections.abc import Callable
from functools import lru_cache

CACHED_COUNTS = 4096
"""How many token counts of prompt parts are remembered."""

LONGEST_PART = 20_000
"""Longer texts, in characters, are whole prompts: their token counts aren't remembered."""


def cached_count(count: Callable[[str], int]) -> Callable[[str], int]:
    """The same count, which remembers those of prompt parts."""
    count_part = lru_cache(maxsize=CACHED_COUNTS)(count)
    return lambda text: count(text) if len(text) > LONGEST_PART else count_part(text)
