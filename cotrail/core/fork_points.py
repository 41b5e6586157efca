"""Fork points: the step from which on a fork computes its own steps."""

from collections.abc import Mapping, Sequence

from cotrail.common.nearest import guess
from cotrail.core.actions.registry import KINDS
from cotrail.errors import InputError

Point = int | str
"""A step's place in its question, from 0 or, below 0, from the end; or the first step of a kind."""

Points = Mapping[str, int]
"""The place of a step in each question, by the question's key."""


def read_point(text: str) -> Point:
    """The point that a person names; InputError says what there is."""
    if text in KINDS:
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no step to fork at{guess(text, KINDS)}: give its number in `cotrail trace`, a negative one "
            f"counted from the end, or a kind of step, which are {', '.join(KINDS)}"
        ) from None


def steps_before(point: Point, kinds: Sequence[str]) -> int:
    """Number of a question's steps before the point, by their kinds; all of them where there is no such step."""
    if isinstance(point, str):
        return kinds.index(point) if point in kinds else len(kinds)
    return max(0, len(kinds) + point) if point < 0 else min(point, len(kinds))
