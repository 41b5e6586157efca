"""Means of scores that come in clusters, such as several answers to one question, with errors that take this in.

Answers to one question are more alike than answers to different ones. An error that took all of them for independent
draws would be too small, the more so the more often each question is asked; the clustered one adds up what the answers
to a question deviate by before it squares (Miller 2024, "Adding error bars to evals", section 2.2; arXiv:2411.00640).
For few clusters it is widened by G / (G - 1) and the interval taken from Student's t with G - 1 degrees of freedom, as
cluster-robust regressions do (Liang & Zeger 1986; Cameron & Miller 2015, section VI).
"""

from collections.abc import Sequence
from math import fsum, sqrt
from statistics import fmean

from msgspec import Struct

from cotrail.evaluation.metrics.confidence_intervals import QUANTILE, ConfidenceInterval, confidence_interval
from cotrail.evaluation.metrics.student_t import student_t_quantile


class ClusteredMean(Struct, frozen=True, kw_only=True):
    """A mean over all scores of all clusters.

    standard_error: None with one cluster. interval: its `questions` are the clusters; None where nothing shows how much
    other clusters would differ.
    """

    mean: float
    standard_error: float | None
    interval: ConfidenceInterval | None


def clustered_mean(
    clusters: Sequence[Sequence[float]], highest: float = 1.0, lowest: float = 0.0
) -> ClusteredMean | None:
    """The mean of these scores, each cluster those of one question; None where there are none.

    highest, lowest: the best and the worst possible score, at which the interval ends.
    """
    filled = [cluster for cluster in clusters if cluster]
    if not filled:
        return None
    mean = fmean(score for cluster in filled for score in cluster)
    if len(filled) == 1:
        return ClusteredMean(mean=mean, standard_error=None, interval=None)
    error = _standard_error(filled, mean)
    if not error:
        # Nothing differs between the questions, so that it teaches nothing how often they were asked.
        interval = confidence_interval([fmean(cluster) for cluster in filled], highest, lowest)
        return ClusteredMean(mean=mean, standard_error=0.0, interval=interval)
    reach = student_t_quantile(len(filled) - 1, QUANTILE) * error
    low, high = max(mean - reach, lowest), min(mean + reach, highest)
    interval = ConfidenceInterval(low=low, high=high, questions=len(filled), method="student-t")
    return ClusteredMean(mean=mean, standard_error=error, interval=interval)


def _standard_error(clusters: Sequence[Sequence[float]], mean: float) -> float:
    """The cluster-robust standard error of the mean of at least two clusters."""
    if len({fmean(cluster) for cluster in clusters}) == 1:
        return 0.0  # not the last bit of a rounded mean
    count, scores = len(clusters), sum(map(len, clusters))
    squares = fsum(fsum(score - mean for score in cluster) ** 2 for cluster in clusters)
    return sqrt(count / (count - 1) * squares) / scores
