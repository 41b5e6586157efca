"""The metrics of questions, a line each, in the order in which scores are listed."""

from cotrail.evaluation.metrics import answer_metrics, paragraph_metrics
from cotrail.evaluation.metrics.metric import Metric

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        answer_metrics.ANSWER_EM,
        answer_metrics.ANSWER_F1,
        answer_metrics.TUNING_F1,
        answer_metrics.COVER_EM,
        answer_metrics.COVER_EM_WORDS,
        answer_metrics.ROUGE_L,
        paragraph_metrics.PARAGRAPH_RECALL,
        paragraph_metrics.PARAGRAPH_PRECISION,
        paragraph_metrics.PARAGRAPH_F1,
        paragraph_metrics.PARAGRAPH_EM,
        paragraph_metrics.TITLE_RECALL,
        paragraph_metrics.ANSWER_SUPPORT_RECALL,
        paragraph_metrics.PARAGRAPHS_COLLECTED,
    )
}
"""The metrics by name."""


def main_metrics() -> tuple[Metric, ...]:
    """The main metrics, by rank."""
    ranked = ((metric.rank, metric) for metric in METRICS.values() if metric.rank is not None)
    return tuple(metric for _, metric in sorted(ranked, key=lambda pair: pair[0]))
