"""McNemar's test of whether two systems that answered the same questions differ by more than chance."""

from collections.abc import Sequence
from math import comb

from msgspec import Struct

from cotrail.errors import InputError


class McNemarResult(Struct, frozen=True, kw_only=True):
    """Disagreement of two systems on the same questions.

    ours, theirs: number of questions that only the one, and only the other, answers correctly.
    p_value: two-sided; the probability of a difference at least this large if the systems were equal.
    """

    questions: int
    ours: int
    theirs: int
    p_value: float


def mcnemar(ours: Sequence[bool], theirs: Sequence[bool]) -> McNemarResult:
    """Exact test, on the binomial distribution of the questions that only one of them answers correctly.

    ours, theirs: whether each question is answered correctly, in the same order. InputError where there are no
    questions, or not as many on both sides.
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
    return min(1.0, 2 * tail / (1 << of))  # The doubled tail exceeds 1 if both counts are equal.
