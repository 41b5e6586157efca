"""Confidence intervals of the mean difference between two systems."""

from collections.abc import Sequence

from msgspec import Struct

from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, Method, confidence_interval
from cotrail.evaluation.metrics.confidence_sequences import confidence_sequence


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


def difference_interval(differences: Sequence[float], span: float) -> DifferenceInterval | None:
    """The 95 % interval for a number of questions that was fixed beforehand: Student's t of the paired differences.

    span: the largest possible difference, the best possible score less the worst. None where all are equal.
    """
    # Not the bootstrap: with scores of 0 and 1 that seldom differ, its corrected intervals (BCa) leave out the mean of
    # equal systems more often than they promise.
    return _interval(confidence_interval(differences, span, -span), 0.95)


def anytime_interval(differences: Sequence[float], span: float, level: float = 0.95) -> DifferenceInterval | None:
    """The interval that holds at every stop, of differences in the order in which their questions were drawn.

    span: see `difference_interval`. None without differences.
    """
    return _interval(confidence_sequence(differences, highest=span, lowest=-span, level=level), level)


def _interval(found: ConfidenceInterval | None, level: float) -> DifferenceInterval | None:
    if found is None:
        return None
    return DifferenceInterval(low=found.low, high=found.high, level=level, method=found.method)
