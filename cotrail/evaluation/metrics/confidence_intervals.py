"""Confidence intervals of mean scores: where the mean over all such questions probably lies.

Wilson's score interval where every question scores 0 or 1 (Wilson 1927; recommended for small samples by Brown, Cai and
DasGupta 2001), otherwise the interval of Student's t, whose error is the standard deviation (n - 1) over the root of n.
Both follow from the scores alone, without a seed. They take the questions for independent draws from all those that the
dataset might have asked (Miller 2024, arXiv:2411.00640).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from math import fsum, sqrt
from statistics import NormalDist, fmean
from typing import Literal

from msgspec import Struct

from cotrail.evaluation.metrics.student_t import student_t_quantile

QUANTILE = 0.975
"""Of either side of a 95 % interval."""


Method = Literal["wilson", "student-t", "empirical-bernstein"]


class ConfidenceInterval(Struct, frozen=True, kw_only=True):
    """A 95 % confidence interval of a mean; questions: the number of scores that it is the mean of.

    method: `empirical-bernstein` holds at every stop (`cotrail.evaluation.metrics.confidence_sequences`).
    """

    low: float
    high: float
    questions: int
    method: Method


def confidence_interval(
    scores: Sequence[float], highest: float = 1.0, lowest: float = 0.0
) -> ConfidenceInterval | None:
    """The interval of the scores' mean, which ends at `lowest` and `highest`.

    highest, lowest: the best and the worst possible score; infinity for counts.
    None without scores, and where all are equal and neither 0 nor 1: such scores don't show how much others differ.
    """
    count, counts = len(scores), Counter(scores)  # most questions share theirs with many others
    if count and (lowest, highest) == (0, 1) and counts.keys() <= {0, 1}:
        return share_interval(counts[1], count)
    if len(counts) < 2:
        return None
    mean = fmean(scores)
    reach = _reach(counts, mean, count)
    low, high = max(mean - reach, lowest), min(mean + reach, highest)
    return ConfidenceInterval(low=low, high=high, questions=count, method="student-t")


def share_interval(hits: int, count: int) -> ConfidenceInterval:
    """The interval of the share that so many of `count` questions, one at least, are."""
    low, high = _wilson(hits / count, count)
    return ConfidenceInterval(low=low, high=high, questions=count, method="wilson")


def _wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's interval of a share; rounding puts neither end on the wrong side of a share of 0 or 1."""
    z = NormalDist().inv_cdf(QUANTILE)
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    reach = z / (1 + z**2 / count) * (share * (1 - share) / count + z**2 / (4 * count**2)) ** 0.5
    return max(min(centre - reach, share), 0.0), min(max(centre + reach, share), 1.0)


def _reach(counts: Mapping[float, int], mean: float, count: int) -> float:
    """How far the interval of Student's t reaches to either side of the mean; counts: of each score."""
    squares = chain.from_iterable(repeat((score - mean) ** 2, times) for score, times in counts.items())
    return student_t_quantile(count - 1, QUANTILE) * sqrt(fsum(squares) / (count - 1) / count)
