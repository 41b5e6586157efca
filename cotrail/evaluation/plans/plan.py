"""The plan of a run: everything that decides what it asks and how it will be judged, known at its submission.

Stating hypothesis, measure and analysis before the data are seen is what separates a test from a search among results
(Nosek et al. 2018, The preregistration revolution).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from cotrail.audit.asked_questions import AskedQuestions
from cotrail.audit.run_check import PLAN, plan_digest
from cotrail.common.nearest import unknown
from cotrail.common.refusals import refusal
from cotrail.core.binding import Binding
from cotrail.core.budgets import Budgets
from cotrail.core.repeats import Repeat
from cotrail.errors import CotrailError, InputError
from cotrail.evaluation.comparison.differences import Demands
from cotrail.evaluation.metrics.metric import Metric, ScoredQuestion
from cotrail.evaluation.metrics.registry import METRICS, main_metrics

Name = Annotated[str, Meta(min_length=1)]


class PlannedComparison(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The comparison that will be made.

    others: the run to compare with, or several; a run's id or name, or `EXPERIMENT/CELL`; it need not be there yet.
    metric: by which they are compared; the primary one where it is empty.
    alpha: how often, at most, equal systems may be called different.
    smallest_difference: of the metric's means, below which a difference doesn't matter.
    """

    others: Name | tuple[Name, ...] = field(name="with")
    metric: str = ""
    alpha: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    smallest_difference: Annotated[float, Meta(gt=0)] | None = None

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs to compare with, as they are named."""
        return (self.others,) if isinstance(self.others, str) else self.others

    @property
    def demands(self) -> Demands:
        """What is asked of a difference, beside that its interval leaves 0 out."""
        return Demands(alpha=self.alpha, least=self.smallest_difference or 0.0)


class Plan(Struct, frozen=True, kw_only=True):
    """The plan of a run.

    settings: the digest over the system's settings, every default spelled out; demonstrations: their digests by form.
    binding: the identities of models and corpora, the profile, temperature and seed.
    questions: their number, and the digests over what is asked, the answers and the gold paragraphs.
    limit: where only the first questions of the file were taken. until: a rule by which the run may end sooner.
    repeat: which of several runs with other seeds it is; None of the only one.
    metrics: those that will be reported; primary: the one that decides, empty where nothing can be scored.
    experiment, cell: where the run is part of an experiment. origin, forked_at: where it is forked from another run.
    """

    system: str
    system_version: int
    settings: str
    demonstrations: dict[str, str]
    binding: Binding
    dataset: str
    questions: AskedQuestions
    limit: int | None
    budgets: Budgets
    until: str | None
    repeat: Repeat | None
    metrics: tuple[str, ...]
    primary: str
    comparison: PlannedComparison | None
    hypothesis: str
    experiment: str | None
    cell: str | None
    origin: str | None
    forked_at: str | None

    @property
    def digest(self) -> str:
        """What people publish before the run, `sha256:` and 64 hexadecimal digits."""
        return plan_digest(self)


def read_plan(provenance: Mapping[str, Any]) -> Plan | None:
    """The plan in a run's provenance; None where the run was submitted before plans were recorded.

    CotrailError where it can't be read, which means that it was changed.
    """
    plan = provenance.get(PLAN)
    try:
        return None if plan is None else msgspec.convert(plan, Plan)
    except msgspec.ValidationError as error:
        raise CotrailError("the run's plan can't be read; `cotrail audit verify RUN` names what was changed") from error


# Plan files: what a person states of a run's evaluation beforehand, and the metrics that its questions allow.

LATEST = "latest"
"""The run submitted last, which is another one tomorrow."""


class PlanFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a plan file states; metrics: the main ones that the questions allow; primary: the first of them."""

    metrics: tuple[str, ...] = ()
    primary: str = ""
    hypothesis: str = ""
    comparison: PlannedComparison | None = None


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
    comparison: PlannedComparison | None


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


def _by(comparison: PlannedComparison | None, primary: str) -> PlannedComparison | None:
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
