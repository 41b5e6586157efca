"""Scores of runs that ask the same questions with other seeds: means over both, and how much the runs differ."""

from collections.abc import Mapping
from statistics import fmean, stdev

from msgspec import Struct

from cotrail.evaluation.metrics.clustered_means import clustered_mean
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.metric import Metric
from cotrail.evaluation.metrics.pass_at_k import PassAtK, mean_pass_at_k
from cotrail.evaluation.metrics.registry import METRICS
from cotrail.evaluation.metrics.scores import QuestionScores

REPEATS_CAVEAT = (
    "The mean is over questions and repeats; its standard error and 95 % interval are clustered by question, since "
    "answers to one question are alike. Between repeats: the standard deviation of the repeats' own means. pass@k: at "
    "least one of k answers is right."
)


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
    """

    runs: tuple[str, ...]
    times: int
    questions: int
    metrics: dict[str, RepeatedMetric | None]


def repeated_scores(runs: Mapping[str, Mapping[str, QuestionScores]], times: int) -> RepeatedScores:
    """The scores of repeats; runs: by their ids the scores of each question by its key."""
    keys = dict.fromkeys(key for scores in runs.values() for key in scores)
    return RepeatedScores(
        runs=tuple(runs),
        times=times,
        questions=len(keys),
        metrics={name: _repeated(metric, [*runs.values()], [*keys]) for name, metric in METRICS.items()},
    )


def _repeated(metric: Metric, runs: list[Mapping[str, QuestionScores]], keys: list[str]) -> RepeatedMetric | None:
    table = [[scores[key].get(metric.name) if key in scores else None for key in keys] for scores in runs]
    rows = [[score for score in row if score is not None] for row in table]
    clusters = [[score for score in column if score is not None] for column in zip(*table, strict=True)]
    whole = clustered_mean(clusters, metric.highest, metric.lowest)
    if whole is None:
        return None
    means = [fmean(row) for row in rows if row]
    return RepeatedMetric(
        mean=whole.mean,
        standard_error=whole.standard_error,
        interval=whole.interval,
        deviation=stdev(means) if len(means) > 1 else None,
        pass_at=mean_pass_at_k([cluster for cluster in clusters if cluster]) if metric.zero_or_one else (),
    )
