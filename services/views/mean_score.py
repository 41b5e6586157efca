"""The mean of a metric over questions of a run, as lists and tiles show it."""

from msgspec import Struct

from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.registry import METRICS
from cotrail.services.runs.partial_scores import PartialScore


class MeanScore(Struct, frozen=True, kw_only=True):
    """A mean with its 95 % interval, None where there is none.

    title, meaning: of the metric; counted: whether it is a number without a bound, rather than a share.
    partial: whether it is of the first questions of a run that goes on.
    """

    metric: str
    title: str
    meaning: str
    mean: float
    low: float | None
    high: float | None
    counted: bool = False
    partial: bool = False


def mean_score(name: str, mean: float, interval: ConfidenceInterval | None, *, partial: bool = False) -> MeanScore:
    """The mean of the metric of this name."""
    metric = METRICS[name]
    return MeanScore(
        metric=name,
        title=metric.title,
        meaning=metric.meaning,
        mean=mean,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        counted=metric.is_count,
        partial=partial,
    )


def partial_means(scores: tuple[PartialScore, ...]) -> tuple[MeanScore, ...]:
    """The scores so far of a run that goes on."""
    return tuple(mean_score(each.metric, each.mean, each.interval, partial=True) for each in scores)
