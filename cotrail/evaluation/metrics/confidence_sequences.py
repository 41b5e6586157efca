"""Confidence sequences of means: intervals that hold at every number of questions at once.

A confidence interval keeps its promise for a number of questions that was fixed beforehand. Someone who looks again and
again, and stops as soon as the interval is narrow or excludes 0, breaks it. A confidence sequence keeps it at all
looks together: with a probability of 95 % none of its intervals misses the mean, whenever and why ever one stops.

This is the predictable plug-in empirical Bernstein sequence (Waudby-Smith & Ramdas 2024, "Estimating means of bounded
random variables by betting", theorem 2; arXiv:2010.09686), with the running intersection of its intervals. It asks
only that scores are bounded and that each question is drawn like those before it: so the questions have to be in an
order that doesn't depend on them, such as a random one, and not in the order in which they ended.
"""

from collections.abc import Sequence
from math import isinf, log
from typing import TYPE_CHECKING

from cotrail.errors import InputError
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

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
