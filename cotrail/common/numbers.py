"""Numbers: bounded ones in settings and files, rounded ones in results."""

from typing import Annotated

from msgspec import Meta

Positive = Annotated[int, Meta(ge=1)]

MOST_DAYS = 36_600
"""A hundred years, the longest time in days."""


def rounded(value: float, decimals: int) -> float:
    """The value with this many decimals; never -0.0, whose JSON, and with it the digest, differs from that of 0.0."""
    return round(value, decimals) + 0.0
