"""Segments of a prompt as text, and the control tokens between them."""

import re
from collections.abc import Callable, Iterable

from msgspec import Struct


class Segment(Struct, frozen=True):
    """A part of a prompt as text; plain: whether it reads like a control token and is none."""

    text: str
    plain: bool = False


def control_pattern(controls: Iterable[str]) -> re.Pattern[str]:
    """Finds the texts of any of these control tokens, the longest one that begins at a place; of none, nothing."""
    longest_first = sorted(filter(None, controls), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def spans_of(controls: re.Pattern[str]) -> Callable[[str], list[tuple[int, int]]]:
    """Where a text reads like a control token."""
    return lambda text: [match.span() for match in controls.finditer(text)]
