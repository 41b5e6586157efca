"""Confidence intervals of the mean difference between two systems."""

import math
import warnings
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from cotrail.evaluation.metrics.confidence_sequences import confidence_sequence

RESAMPLES = 9_999

MOST_RESAMPLED = 5_000
"""The most questions whose differences are resampled. With more of them the bootstrap's interval and Student's are the
same to a hundredth of their width, and only one of them takes no time."""

_MOST_VALUES = 2_000_000
"""Values drawn at once, to bound the memory."""

Method = Literal["bca", "percentile", "student-t", "empirical-bernstein"]


class DifferenceInterval(Struct, frozen=True, kw_only=True):
    """An interval of a mean difference.

    level: the probability with which such an interval has the mean difference of all such questions in it.
    method: `empirical-bernstein` holds at every stop (`cotrail.evaluation.metrics.confidence_sequences`).
    """

    low: float
    high: float
    level: float
    method: Method

    @property
    def side(self) -> float:
        """The end that is nearest to 0, and 0 where that is within the interval."""
        return max(self.low, 0.0) + min(self.high, 0.0)

    def mirrored(self) -> "DifferenceInterval":
        """The interval of the difference the other way round."""
        return DifferenceInterval(low=0.0 - self.high, high=0.0 - self.low, level=self.level, method=self.method)


def difference_interval(differences: Sequence[float], seed: int, level: float = 0.95) -> DifferenceInterval | None:
    """The interval for a number of questions that was fixed beforehand; the order of the differences doesn't matter.

    The bias-corrected and accelerated bootstrap (Efron 1987), the percentile bootstrap where that isn't defined, and
    Student's t where there are more than `MOST_RESAMPLED` questions. None where all differences are equal.
    """
    ordered, mirrored = sorted(differences), sorted(-each for each in differences)
    if not ordered or ordered[0] == ordered[-1]:
        return None
    # Drawn for one of the two directions, so that the other has exactly the mirrored interval.
    if mirrored > ordered:
        interval = difference_interval(mirrored, seed, level)
        return interval.mirrored() if interval else None
    if len(ordered) > MOST_RESAMPLED:
        return _student(ordered, level)
    return _resampled(ordered, seed, level, "BCa") or _resampled(ordered, seed, level, "percentile")


def anytime_interval(differences: Sequence[float], span: float, level: float = 0.95) -> DifferenceInterval | None:
    """The interval that holds at every stop, of differences in the order in which their questions were drawn.

    span: the largest possible difference, the best possible score less the worst. None without differences.
    """
    interval = confidence_sequence(differences, highest=span, lowest=-span, level=level)
    if interval is None:
        return None
    return DifferenceInterval(low=interval.low, high=interval.high, level=level, method="empirical-bernstein")


def _student(differences: Sequence[float], level: float) -> DifferenceInterval:
    from scipy import stats

    low, high = stats.ttest_1samp(differences, 0).confidence_interval(level)
    return DifferenceInterval(low=float(low), high=float(high), level=level, method="student-t")


def _resampled(
    differences: Sequence[float], seed: int, level: float, method: Literal["BCa", "percentile"]
) -> DifferenceInterval | None:
    """None where the method isn't defined for these differences."""
    import numpy
    from scipy import stats

    options: dict[str, Any] = {"n_resamples": RESAMPLES, "batch": max(1, _MOST_VALUES // len(differences))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it isn't defined, which the result says too
        low, high = stats.bootstrap(
            (differences,),
            numpy.mean,
            confidence_level=level,
            method=method,
            rng=numpy.random.default_rng(seed),
            **options,
        ).confidence_interval
    named: Method = "bca" if method == "BCa" else "percentile"
    undefined = math.isnan(low) or math.isnan(high)
    return None if undefined else DifferenceInterval(low=float(low), high=float(high), level=level, method=named)
