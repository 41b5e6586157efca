"""Whether two systems that answered the same questions differ in more than chance (McNemar's test)."""

from collections.abc import Sequence
from math import comb

from msgspec import Struct

from cotrail.errors import InputError


class McNemarResult(Struct, frozen=True, kw_only=True):
    """How two systems differ on the same questions.

    ours, theirs: how many questions only the one and only the other answers right.
    p_value: how probable a difference at least this large, either way, would be if there were none.
    """

    questions: int
    ours: int
    theirs: int
    p_value: float


def mcnemar(ours: Sequence[bool], theirs: Sequence[bool]) -> McNemarResult:
    """The exact test, by the binomial distribution of the questions that only one answers right, doubled.

    ours, theirs: whether each question is answered right, in the same order. InputError where there are no questions,
    or not as many on both sides.
    """
    if len(ours) != len(theirs) or not ours:
        raise InputError(
            f"{len(ours)} and {len(theirs)} answers can't be compared: give those of both systems to the same questions"
        )
    pairs = list(zip(ours, theirs, strict=True))
    first, second = pairs.count((True, False)), pairs.count((False, True))
    return McNemarResult(questions=len(pairs), ours=first, theirs=second, p_value=_p_value(first, second))


def _p_value(first: int, second: int) -> float:
    of = first + second
    tail = sum(comb(of, number) for number in range(min(first, second) + 1))
    return min(1.0, 2 * tail / (1 << of))
