"""Differences between systems on the same questions, in families of comparisons that are made together.

With a number of questions that was fixed beforehand, the paired permutation test says whether a difference is shown,
its p-value corrected by Holm's method (1979, Scandinavian Journal of Statistics 6, 65-70) for the comparisons of the
family: then the probability that any of them calls equal systems different is 5 % at most.

Where questions are still open, or were asked until an interval was narrow, that promise is broken, as the data decides
how many there are. There a difference is shown where a confidence sequence excludes 0, which keeps the promise at every
stop; of m comparisons each has the level 1 - 0.05 / m (Bonferroni).
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from msgspec import Struct

from cotrail.evaluation.comparison.intervals import DifferenceInterval, anytime_interval, difference_interval
from cotrail.evaluation.comparison.power import questions_needed
from cotrail.evaluation.comparison.sign_flips import PermutationTest, sign_flip_test

ALPHA = 0.05
"""The probability, over a family of comparisons, of calling equal systems different."""

SEED = 0
"""Of the signs that are drawn: the same scores have the same p-values."""

Verdict = Literal["better", "worse", "undecided"]


class Difference(Struct, frozen=True, kw_only=True):
    """The mean difference of a metric between two systems; positive where the first has more.

    test: None where the number of questions wasn't fixed, and where there are none.
    corrected: its p-value, corrected for the comparisons made together.
    needed: the number of questions that would have been needed to show this difference; see `questions_needed`.
    verdict: whether the first system is shown to have more, or less, or neither.
    """

    questions: int
    mean: float | None
    interval: DifferenceInterval | None
    test: PermutationTest | None
    corrected: float | None
    needed: int | None
    verdict: Verdict


def fixed_differences(family: Sequence[Sequence[float]], span: float) -> list[Difference]:
    """Compare by these differences, one sequence a comparison, for a number of questions that was fixed beforehand.

    span: the largest possible difference.
    """
    tests = [sign_flip_test(each, SEED) if each else None for each in family]
    corrected = iter(holm([test.p_value for test in tests if test]))
    return [
        _difference(each, difference_interval(each, span), test, next(corrected) if test else None)
        for each, test in zip(family, tests, strict=True)
    ]


def anytime_differences(family: Sequence[Sequence[float]], span: float) -> list[Difference]:
    """Compare by these differences, in the order in which their questions were drawn, at any stop.

    span: the largest possible difference; infinity for numbers of things, which have no interval then.
    """
    level = 1 - ALPHA / max(1, len(family))
    bounded = span != float("inf")
    return [_difference(each, anytime_interval(each, span, level) if bounded else None, None, None) for each in family]


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values, corrected by Holm's method for being tested together."""
    # Not statsmodels' `multipletests`, which collects Python's garbage at each call.
    corrected, before = dict.fromkeys(range(len(p_values)), 0.0), 0.0
    for rank, place in enumerate(sorted(corrected, key=p_values.__getitem__)):
        before = corrected[place] = max(before, min(1.0, p_values[place] * (len(p_values) - rank)))
    return list(corrected.values())


def _difference(
    differences: Sequence[float],
    interval: DifferenceInterval | None,
    test: PermutationTest | None,
    corrected: float | None,
) -> Difference:
    mean = fmean(differences) if differences else None
    return Difference(
        questions=len(differences),
        mean=mean,
        interval=interval,
        test=test,
        corrected=corrected,
        needed=questions_needed(differences),
        verdict=_verdict(mean, interval, corrected),
    )


def _verdict(mean: float | None, interval: DifferenceInterval | None, corrected: float | None) -> Verdict:
    """Whether a difference is shown: by the corrected p-value where there is one, otherwise by the interval."""
    side = interval.side if interval else 0.0
    if corrected is not None:
        side = mean if mean and corrected <= ALPHA else 0.0
    return "better" if side > 0 else "worse" if side < 0 else "undecided"
