"""Where a mean over all such questions probably lies: intervals, and sequences that hold at every stop.

Scores have a worst and a best possible value, and their intervals take no more than that for known
(`cotrail.evaluation.metrics.bounded_means`): Clopper and Pearson's where every question has one of the two, otherwise
Gaffke's. Numbers of things have no such bound, and Student's t, whose error is the standard deviation (n - 1) over the
root of n: it misses more often than it says where few questions have most of the things. All follow from the scores
alone, without a seed. They take the questions for independent draws from all those that the dataset might have asked
(Miller 2024, arXiv:2411.00640).
"""

from collections.abc import Sequence
from math import comb, fsum, isinf, log, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from cotrail.errors import InputError
from cotrail.evaluation.metrics.bounded_means import counted, mean_bounds, student_t_quantile

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


LEVEL = 0.95
"""The usual level."""

ALIKE = 1e-9
"""Numbers of things that spread less are equal but for rounding."""

Method = Literal["clopper-pearson", "gaffke", "student-t", "empirical-bernstein"]


class ConfidenceInterval(Struct, frozen=True, kw_only=True):
    """A 95 % confidence interval of a mean; questions: the number of scores that it is the mean of.

    method: `empirical-bernstein` holds at every stop (`cotrail.evaluation.metrics.confidence_intervals`).
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


# Confidence sequences of means: intervals that hold at every number of questions at once.

_MOST_BET = 0.5
"""The most that is bet on one score: c of the paper, which recommends 1/2 or 3/4."""


def confidence_sequence(
    scores: Sequence[float], highest: float = 1.0, lowest: float = 0.0, level: float = 0.95
) -> ConfidenceInterval | None:
    """The interval of the mean after these scores, in the order in which their questions were drawn; None without any.

    highest, lowest: the best and the worst possible score. InputError where these are infinite: the mean of a number
    without a bound has no such interval.
    """
    if isinf(highest) or isinf(lowest):
        raise InputError("a number of things has no best value, so no interval holds at every stop: name a score")
    if not scores:
        return None
    lows, highs = _bounds([(score - lowest) / (highest - lowest) for score in scores], 1 - level)
    low, high = float(lows[-1]), float(highs[-1])
    width = highest - lowest
    return ConfidenceInterval(
        low=lowest + width * low, high=lowest + width * high, questions=len(scores), method="empirical-bernstein"
    )


def narrower_after(
    scores: Sequence[float], width: float, highest: float = 1.0, lowest: float = 0.0, level: float = 0.95
) -> int | None:
    """The number of these scores after which the interval was narrower than `width` for the first time; None if never.

    It follows from the scores in their order alone, whenever one looks. Bounds as in `confidence_sequence`.
    """
    if not scores:
        return None
    lows, highs = _bounds([(score - lowest) / (highest - lowest) for score in scores], 1 - level)
    narrow = (highs - lows) * (highest - lowest) < width
    return int(narrow.argmax()) + 1 if narrow.any() else None


def _bounds(shares: Sequence[float], alpha: float) -> "tuple[NDArray[float64], NDArray[float64]]":
    """The running intersection of the intervals after each of these scores from 0 to 1."""
    import numpy

    values, counts = numpy.asarray(shares, dtype=float), numpy.arange(1, len(shares) + 1)
    means = (0.5 + values.cumsum()) / (counts + 1)
    variances = (0.25 + ((values - means) ** 2).cumsum()) / (counts + 1)
    before, spread = numpy.append(0.5, means[:-1]), numpy.append(0.25, variances[:-1])
    bets = numpy.minimum((2 * log(2 / alpha) / (spread * counts * numpy.log1p(counts))) ** 0.5, _MOST_BET)
    staked = bets.cumsum()
    surprise = (4 * (values - before) ** 2 * (-numpy.log1p(-bets) - bets) / 4).cumsum()
    centres, reaches = (bets * values).cumsum() / staked, (log(2 / alpha) + surprise) / staked
    lows = numpy.maximum.accumulate((centres - reaches).clip(0, 1))
    # Where the intervals have nothing in common, which happens to one sequence in twenty at most, a point is left.
    return lows, numpy.maximum(numpy.minimum.accumulate((centres + reaches).clip(0, 1)), lows)
