"""The metrics of questions, in the order in which scores are listed."""

from cotrail.evaluation.metrics import answer_metrics
from cotrail.evaluation.metrics.metric import Metric

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (*answer_metrics.METRICS, *answer_metrics.PARAGRAPH_METRICS, *answer_metrics.RANKING_METRICS)
}
"""The metrics by name; extensions add to them."""

BUILT_IN = frozenset(METRICS)
"""The names of those that every process knows."""


def main_metrics() -> tuple[Metric, ...]:
    """The main metrics, by rank."""
    ranked = ((metric.rank, metric) for metric in METRICS.values() if metric.rank is not None)
    return tuple(metric for _, metric in sorted(ranked, key=lambda pair: pair[0]))
