"""The metrics of questions, in the order in which scores are listed."""

from pathlib import Path

from cotrail.common.toml_files import read_toml
from cotrail.evaluation.metrics.answer_metrics import SCORES
from cotrail.evaluation.metrics.metric import Metric

_DESCRIBED = read_toml(Path(__file__).with_name("metrics.toml"))

METRICS = {name: Metric(name=name, score=SCORES[name], **said) for name, said in _DESCRIBED.items()}
"""The metrics by name; extensions add to them."""

BUILT_IN = frozenset(METRICS)
"""The names of those that every process knows."""


def main_metrics() -> tuple[Metric, ...]:
    """The main metrics, by rank."""
    ranked = ((metric.rank, metric) for metric in METRICS.values() if metric.rank is not None)
    return tuple(metric for _, metric in sorted(ranked, key=lambda pair: pair[0]))
