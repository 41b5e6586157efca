"""Scores of runs that ask the same questions with other seeds: means over both, and how much the runs differ."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from math import comb, sqrt
from statistics import fmean, stdev

from msgspec import Struct

from cotrail.data.datasets.sampling import shuffled
from cotrail.errors import InputError
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.confidence_intervals import ALIKE, ConfidenceInterval, confidence_interval
from cotrail.evaluation.metrics.metric import Metric, QuestionScores
from cotrail.evaluation.metrics.question_scores import LEFT_OVER_CAVEAT, REPEATS_CAVEAT, IntervalOf
from cotrail.evaluation.metrics.stop_rules import interval_of

# Means of scores that come in clusters, such as several answers to one question, with errors that take this in.
#
# Answers to one question are more alike than answers to different ones: an error that took all of them for independent
# draws would be too small, the more so the more often each question is asked (Miller 2024, "Adding error bars to
# evals", section 2.2; arXiv:2411.00640). Independent are the questions. So each counts once, with the mean of its
# answers, and error and interval are those of these means. With as many answers to each question, the error is the
# cluster-robust one with the factor G / (G - 1), G being the number of questions (Liang & Zeger 1986).

MeanInterval = Callable[[Sequence[float]], ConfidenceInterval | None]
"""Computes the interval of the mean of these."""


class ClusteredMean(Struct, frozen=True, kw_only=True):
    """A mean over the means of all clusters.

    standard_error: None with one cluster. interval: its `questions` are the clusters; None where nothing shows how much
    other clusters would differ.
    """

    mean: float
    standard_error: float | None
    interval: ConfidenceInterval | None


def clustered_mean(
    clusters: Sequence[Sequence[float]], interval: MeanInterval = confidence_interval
) -> ClusteredMean | None:
    """The mean of these scores, each cluster those of one question; None where there are none.

    interval: computed from the means of the clusters; scores are from 0 to 1 by default.
    """
    means = [fmean(cluster) for cluster in clusters if cluster]
    if not means:
        return None
    spread = stdev(means) if len(means) > 1 else None
    error = None if spread is None else spread / sqrt(len(means)) if spread > ALIKE else 0.0
    return ClusteredMean(mean=fmean(means), standard_error=error, interval=interval(means))


# pass@k: the probability that at least one of k answers to a question is right (Kulal et al. 2019).
#
# Estimated from n answers of which c are right by 1 - C(n - c, k) / C(n, k): the share of all choices of k of them that
# hold a right one. It has no bias, unlike 1 - (1 - c/n)^k (Chen et al. 2021, section 2.1; arXiv:2107.03374).


class PassAtK(Struct, frozen=True, kw_only=True):
    """The mean of pass@k over questions; the interval is over questions too."""

    k: int
    mean: float
    interval: ConfidenceInterval | None


def pass_at_k(samples: int, right: int, k: int) -> float:
    """The estimate for a question of which `right` of `samples` answers are right; k: from 1 to `samples`."""
    return 1 - comb(samples - right, k) / comb(samples, k)


def mean_pass_at_k(
    questions: Sequence[Sequence[float]], interval: MeanInterval = confidence_interval
) -> tuple[PassAtK, ...]:
    """For each k up to the number of answers that every question has; each score is 0 or 1, and questions have some."""
    return tuple(_mean(questions, k, interval) for k in range(1, min(map(len, questions), default=0) + 1))


def _mean(questions: Sequence[Sequence[float]], k: int, interval: MeanInterval) -> PassAtK:
    shares = [pass_at_k(len(scores), round(sum(scores)), k) for scores in questions]
    return PassAtK(k=k, mean=fmean(shares), interval=interval(shares))


# The spread of results over demonstration sets.


class Spread(Struct, frozen=True, kw_only=True):
    """A mean and the sample standard deviation (n - 1); the latter is None for a single value."""

    mean: float
    deviation: float | None


def mean_and_deviation(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation of the results of several demonstration sets; InputError for no results."""
    if not values:
        raise InputError("there are no results to take the mean of; wait until a run is finished")
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Spread(mean=statistics.mean(values), deviation=deviation)


class RepeatedMetric(Struct, frozen=True, kw_only=True):
    """A metric over questions and repeats.

    standard_error, interval: clustered by question. deviation: the sample standard deviation between the means of the
    repeats, None of one repeat. pass_at: for each k up to the number of repeats, of a metric that is 0 or 1.
    """

    mean: float
    standard_error: float | None
    interval: ConfidenceInterval | None
    deviation: float | None
    pass_at: tuple[PassAtK, ...] = ()


class RepeatedScores(Struct, frozen=True, kw_only=True):
    """The scores of repeats together.

    runs: their ids, in the order of their seeds; times: how many were submitted, of which some may have been removed.
    metrics: None where no question has it.
    is_fixed: whether the number of questions was fixed beforehand; otherwise the intervals hold at every stop, and
        numbers of things have none.
    """

    runs: tuple[str, ...]
    times: int
    questions: int
    metrics: dict[str, RepeatedMetric | None]
    is_fixed: bool = True

    @property
    def caveat(self) -> str:
        """What the means and intervals promise."""
        return REPEATS_CAVEAT if self.is_fixed else f"{REPEATS_CAVEAT} {LEFT_OVER_CAVEAT}"


def repeated_scores(
    runs: Mapping[str, Mapping[str, QuestionScores]], times: int, *, is_fixed: bool = True
) -> RepeatedScores:
    """The scores of repeats; runs: by their ids the scores of each question by its key, in the order of the questions.

    is_fixed: whether all of them were asked all their questions, and no rule stops one.
    """
    keys = dict.fromkeys(key for scores in runs.values() for key in scores)
    return RepeatedScores(
        runs=tuple(runs),
        times=times,
        questions=len(keys),
        metrics={
            name: _repeated(metric, [*runs.values()], [*keys], interval_of(is_fixed=is_fixed))
            for name, metric in METRICS.items()
        },
        is_fixed=is_fixed,
    )


def _repeated(
    metric: Metric, runs: list[Mapping[str, QuestionScores]], keys: list[str], interval: IntervalOf
) -> RepeatedMetric | None:
    table = [[scores[key].get(metric.name) if key in scores else None for key in keys] for scores in runs]
    rows = [[score for score in row if score is not None] for row in table]
    clusters = [[score for score in column if score is not None] for column in zip(*table, strict=True)]
    whole = clustered_mean(clusters, lambda means: interval(metric, means))
    if whole is None:
        return None
    means = [fmean(row) for row in rows if row]
    return RepeatedMetric(
        mean=whole.mean,
        standard_error=whole.standard_error,
        interval=whole.interval,
        deviation=stdev(means) if len(means) > 1 else None,
        pass_at=mean_pass_at_k([cluster for cluster in clusters if cluster], lambda shares: interval(metric, shares))
        if metric.zero_or_one
        else (),
    )


# Steps that were carried out again: how they are drawn, and which share of them came out otherwise.


class OtherwiseShare(Struct, frozen=True, kw_only=True):
    """How many of `of` came out otherwise; share and interval are None where there are none."""

    otherwise: int
    of: int
    share: float | None
    interval: ConfidenceInterval | None


def otherwise_share(otherwise: Sequence[bool]) -> OtherwiseShare:
    """The share of those that came out otherwise, with its exact interval."""
    count, of = sum(otherwise), len(otherwise)
    interval = confidence_interval([float(each) for each in otherwise])
    return OtherwiseShare(otherwise=count, of=of, share=count / of if of else None, interval=interval)


def draw_steps(candidates: Mapping[str, Sequence[int]], share: float, seed: int) -> dict[str, int]:
    """Draw this share of the questions, at least one, and of each one step; both depend on the seed and the keys alone.

    candidates: the steps of each question that may be drawn, by its key; none is empty.
    """
    size = max(1, round(share * len(candidates)))
    keys = set(shuffled(candidates, str, seed)[:size])
    return {key: _drawn(key, numbers, seed) for key, numbers in candidates.items() if key in keys}


def _drawn(key: str, numbers: Sequence[int], seed: int) -> int:
    return shuffled(numbers, lambda number: f"{key}\0{number}", seed)[0]
