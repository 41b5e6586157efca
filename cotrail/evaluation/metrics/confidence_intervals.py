"""Confidence intervals of mean scores: where the mean over all such questions probably lies.

Scores have a worst and a best possible value, and their intervals take no more than that for known
(`cotrail.evaluation.metrics.bounded_means`): Clopper and Pearson's where every question has one of the two, otherwise
Gaffke's. Numbers of things have no such bound, and Student's t, whose error is the standard deviation (n - 1) over the
root of n: it misses more often than it says where few questions have most of the things. All follow from the scores
alone, without a seed. They take the questions for independent draws from all those that the dataset might have asked
(Miller 2024, arXiv:2411.00640).
"""

from collections.abc import Sequence
from math import comb, fsum, isinf, sqrt
from statistics import fmean
from typing import Literal

from msgspec import Struct

from cotrail.errors import InputError
from cotrail.evaluation.metrics.bounded_means import counted, mean_bounds, student_t_quantile

LEVEL = 0.95
"""The usual level."""

ALIKE = 1e-9
"""Numbers of things that spread less are equal but for rounding."""

Method = Literal["clopper-pearson", "gaffke", "student-t", "empirical-bernstein"]


class ConfidenceInterval(Struct, frozen=True, kw_only=True):
    """A 95 % confidence interval of a mean; questions: the number of scores that it is the mean of.

    method: `empirical-bernstein` holds at every stop (`cotrail.evaluation.metrics.confidence_sequences`).
    """

    low: float
    high: float
    questions: int
    method: Method


def confidence_interval(
    scores: Sequence[float], highest: float = 1.0, lowest: float = 0.0, level: float = LEVEL
) -> ConfidenceInterval | None:
    """The interval of the scores' mean, which ends at `lowest` and `highest`.

    highest, lowest: the best and the worst possible score; infinity for counts. None without scores, and for counts
    that are all equal: these don't show how much others differ.
    """
    count = len(scores)
    if isinf(highest) or isinf(lowest):
        if count < 2:
            return None
        mean = fmean(scores)
        spread = sqrt(fsum((score - mean) ** 2 for score in scores) / (count - 1))
        if spread < ALIKE:
            return None
        reach = student_t_quantile(count - 1, (1 + level) / 2) * spread / sqrt(count)
        return ConfidenceInterval(
            low=max(mean - reach, lowest), high=min(mean + reach, highest), questions=count, method="student-t"
        )
    if not count:
        return None
    points = counted(scores)
    low, high = mean_bounds(points, lowest, highest, level)
    method: Method = "clopper-pearson" if points.keys() <= {lowest, highest} else "gaffke"
    return ConfidenceInterval(low=low, high=high, questions=count, method=method)


def share_interval(hits: int, count: int) -> ConfidenceInterval:
    """The interval of the share that so many of `count` questions, one at least, are."""
    low, high = mean_bounds({0.0: count - hits, 1.0: hits}, 0.0, 1.0, LEVEL)
    return ConfidenceInterval(low=low, high=high, questions=count, method="clopper-pearson")


# McNemar's test of whether two systems that answered the same questions differ by more than chance.


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
