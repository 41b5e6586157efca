"""Plan files: what a person states of a run's evaluation beforehand, and the metrics that its questions allow."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.nearest import unknown
from cotrail.common.refusals import refusal
from cotrail.errors import InputError
from cotrail.evaluation.metrics.metric import Metric, ScoredQuestion
from cotrail.evaluation.metrics.registry import METRICS, main_metrics
from cotrail.evaluation.plans.plan import Comparison

LATEST = "latest"
"""The run submitted last, which is another one tomorrow."""


class PlanFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a plan file states; metrics: the main ones that the questions allow; primary: the first of them."""

    metrics: tuple[str, ...] = ()
    primary: str = ""
    hypothesis: str = ""
    comparison: Comparison | None = None


def read_plan_file(values: Mapping[str, Any], where: str) -> PlanFile:
    """The statements of a plan file, whose keys these are; InputError names what can't be used. where: the file."""
    try:
        stated = msgspec.convert(values, PlanFile)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {refusal(error, PlanFile, values)}; correct it") from error
    compared = (stated.comparison.metric,) if stated.comparison else ()
    for name in (*stated.metrics, stated.primary, *compared):
        if name and name not in METRICS:
            raise InputError(f"{where}: {unknown('metric', name, METRICS)}")
    if stated.comparison and LATEST in stated.comparison.runs:
        raise InputError(f"{where}: `latest` is another run tomorrow: name the run to compare with by its id")
    return stated


class PlannedMetrics(Struct, frozen=True, kw_only=True):
    """The metrics that will be reported, the one that decides, and the comparison by one of them."""

    metrics: tuple[str, ...]
    primary: str
    comparison: Comparison | None


def planned_metrics(stated: PlanFile, questions: Sequence[ScoredQuestion]) -> PlannedMetrics:
    """What a plan says of metrics, of questions that nobody has answered yet.

    Raises InputError for a metric that the questions publish nothing for, or that isn't among those that are reported.
    """
    names = stated.metrics or tuple(metric.name for metric in main_metrics() if _measures(metric, questions))
    if lacking := next((name for name in stated.metrics if not _measures(METRICS[name], questions)), None):
        raise InputError(f"the plan's metric {lacking} needs what none of the questions publishes; name others")
    primary = stated.primary or next((name for name in names if not METRICS[name].is_count), "")
    comparison = _by(stated.comparison, primary)
    for name in (primary, comparison.metric if comparison else primary):
        if name and name not in names:
            raise InputError(f"the plan reports {', '.join(names)}, and not {name!r}, which is to decide: add it")
    return PlannedMetrics(metrics=names, primary=primary, comparison=comparison)


def _by(comparison: Comparison | None, primary: str) -> Comparison | None:
    """The comparison with all that it leaves open spelled out."""
    if comparison is None:
        return None
    metric = comparison.metric or primary
    if not metric:
        raise InputError("the plan's comparison needs a metric, and the questions publish nothing to score by")
    return replace(comparison, others=comparison.runs, metric=metric)


def _measures(metric: Metric, questions: Sequence[ScoredQuestion]) -> bool:
    """Whether the metric has a value for any of the questions."""
    return any(metric.value(question) is not None for question in questions)
