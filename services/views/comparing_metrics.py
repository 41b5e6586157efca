"""Metrics by which runs are compared: which there are, and every question's value."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection

from cotrail.common.nearest import guess
from cotrail.errors import InputError, UnknownNameError
from cotrail.evaluation.metrics.metric import Metric
from cotrail.evaluation.metrics.registry import METRICS, main_metrics
from cotrail.models.queries.runs import RunRecord
from cotrail.services.views.scoring import scores_by_question

MetricColumns = Mapping[str, Mapping[str, float | None]]
"""The value of each question, by the name of the metric and the question's id; None where it has none."""


def metric_columns(connection: Connection, record: RunRecord) -> MetricColumns:
    """All metrics of a run's questions as it stands."""
    scored = scores_by_question(connection, record)
    return {name: {key: each.scores[name] for key, each in scored.items()} for name in METRICS}


def check_names(names: Sequence[str]) -> None:
    """Raise UnknownNameError where there is no metric of such a name."""
    for name in names:
        if name not in METRICS:
            raise UnknownNameError(
                f"there is no metric {name!r}{guess(name, METRICS)}; the metrics are {', '.join(METRICS)}"
            )


def compared_metrics(
    columns: Mapping[str, MetricColumns], keys: Collection[str], names: Sequence[str] = ()
) -> tuple[Metric, ...]:
    """The metrics to compare by, the primary one first: those named, or else the main scores that all runs have.

    columns: by run. Raises InputError where a run has no value of a named metric, or all runs have none in common.
    """

    def lacking(name: str) -> list[str]:
        return [run for run, of in columns.items() if all(of[name].get(key) is None for key in keys)]

    for name in names:
        if without := lacking(name):
            raise InputError(f"no question of {', '.join(without)} has {name}; leave it out")
    if names:
        return tuple(METRICS[name] for name in dict.fromkeys(names))
    found = tuple(metric for metric in main_metrics() if not metric.is_count and not lacking(metric.name))
    if not found:
        raise InputError(
            "the runs have no score in common: their questions publish no answers, or none has ended in every run; "
            "wait for them, or name what to compare by with --metric"
        )
    return found


def paired(first: MetricColumns, second: MetricColumns, metric: str, keys: Collection[str]) -> dict[str, float]:
    """The first run's value less the second's, by question, where both have one; in the order of the questions."""
    pairs = ((key, first[metric].get(key), second[metric].get(key)) for key in keys)
    return {key: ours - theirs for key, ours, theirs in pairs if ours is not None and theirs is not None}
