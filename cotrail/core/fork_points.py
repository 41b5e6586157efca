"""From which step on a fork goes its own way."""

from collections.abc import Sequence

from cotrail.core.actions.registry import KINDS
from cotrail.errors import InputError

Point = int | str
"""A step's place in its question, from 0 or, below 0, from the end; or the first step of a kind."""


def read_point(text: str) -> Point:
    """The point that a person names; InputError says what there is."""
    if text in KINDS:
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no step to fork at: give its number in `cotrail trace`, a negative one counted from the end, "
            f"or a kind of step, which are {', '.join(KINDS)}"
        ) from None


def steps_before(point: Point, kinds: Sequence[str]) -> int:
    """How many of a question's steps, which are of these kinds, lie before the point; all where there is none such."""
    if isinstance(point, str):
        return kinds.index(point) if point in kinds else len(kinds)
    return max(0, len(kinds) + point) if point < 0 else min(point, len(kinds))
