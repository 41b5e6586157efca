"""pass@k: the probability that at least one of k answers to a question is right (Kulal et al. 2019).

Estimated from n answers of which c are right by 1 - C(n - c, k) / C(n, k): the share of all choices of k of them that
hold a right one. It has no bias, unlike 1 - (1 - c/n)^k (Chen et al. 2021, section 2.1; arXiv:2107.03374).
"""

from collections.abc import Sequence
from math import comb
from statistics import fmean

from msgspec import Struct

from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval


class PassAtK(Struct, frozen=True, kw_only=True):
    """The mean of pass@k over questions; the interval is over questions too."""

    k: int
    mean: float
    interval: ConfidenceInterval | None


def pass_at_k(samples: int, right: int, k: int) -> float:
    """The estimate for a question of which `right` of `samples` answers are right; k: from 1 to `samples`."""
    return 1 - comb(samples - right, k) / comb(samples, k)


def mean_pass_at_k(questions: Sequence[Sequence[float]]) -> tuple[PassAtK, ...]:
    """For each k up to the number of answers that every question has; each score is 0 or 1, and questions have some."""
    return tuple(_mean(questions, k) for k in range(1, min(map(len, questions), default=0) + 1))


def _mean(questions: Sequence[Sequence[float]], k: int) -> PassAtK:
    shares = [pass_at_k(len(scores), round(sum(scores)), k) for scores in questions]
    return PassAtK(k=k, mean=fmean(shares), interval=confidence_interval(shares))
