"""The plan of a run as it was sealed, and where the run departed from it."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.audit.run_check import PLAN, plan_digest
from cotrail.common.humanize import moment
from cotrail.common.structs import shortened
from cotrail.configuration.files import corpora_of
from cotrail.configuration.settings import settings
from cotrail.core.binding import OWN_FIELDS
from cotrail.errors import InputError, UnavailableError, UnknownNameError
from cotrail.evaluation.plans import (
    ComparedRun,
    Plan,
    PlannedComparison,
    RunFacts,
    deviations,
    read_plan,
    remarks,
    reporting,
    unplanned,
)
from cotrail.models.queries.experiments import read_experiment
from cotrail.models.queries.listed_questions import read_asked_digests
from cotrail.models.queries.progress import read_ends
from cotrail.models.queries.runs import RunRecord, resolve_run
from cotrail.models.queries.step_attempts import read_irregularities
from cotrail.models.records.budgets import read_budgets
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.labels import find_run
from cotrail.services.store import reading


class RunPlan(Struct, frozen=True, kw_only=True):
    """A run's plan.

    plan, digest: None where the run was submitted before plans were recorded.
    sealed: when, by the database's clock. deviations: where the run departed from it, in words; remarks: what the plan
        provides for and a reader should know.
    """

    run: str
    sealed: datetime
    digest: str | None = None
    plan: Plan | None = None
    deviations: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@operation("plans.show", "GET", "/runs/{run}/plan", Scope.READ)
def show_plan(run: str) -> RunPlan:
    """Show a run's plan, sealed before its first step, and where the run departed from it."""
    with reading() as connection:
        return plan_of_run(connection, find_run(connection, run))


def plan_of_run(connection: Connection, record: RunRecord) -> RunPlan:
    """The plan of a run, and where the run departed from it as it stands."""
    plan = read_plan(record.provenance)
    if plan is None:
        return RunPlan(run=record.id, sealed=record.created_at)
    facts = _facts(connection, record, plan)
    return RunPlan(
        run=record.id,
        digest=plan_digest(record.provenance[PLAN]),
        sealed=record.created_at,
        plan=plan,
        deviations=deviations(plan, facts),
        remarks=remarks(plan, facts),
    )


def resolved_plan(connection: Connection, record: RunRecord) -> Plan | None:
    """A run's plan with ids in place of the names of runs to compare with, as far as there are such runs."""
    plan = read_plan(record.provenance)
    if plan is None or plan.comparison is None:
        return plan
    others = tuple(_found(connection, named) or named for named in plan.comparison.runs)
    return replace(plan, comparison=replace(plan.comparison, others=others))


def planned_comparison(plan: Plan | None, runs: Collection[str]) -> PlannedComparison | None:
    """The comparison of a resolved plan with any of these runs, by id; None where it has none."""
    comparison = plan.comparison if plan else None
    return comparison if comparison and set(comparison.runs) & set(runs) else None


def unplanned_of(plan: Plan | None, metrics: Sequence[str], runs: Collection[str]) -> tuple[str, ...] | None:
    """What of a comparison a run's resolved plan doesn't have: metrics by name, the first of which decides, and runs.

    None where the plan names no comparison.
    """
    return None if plan is None or plan.comparison is None else unplanned(plan, metrics, runs, metrics[0])


@operation("plans.reporting", "GET", "/runs/{run}/plan/reporting", Scope.READ)
def show_reporting(run: str) -> tuple[str, ...]:
    """Say what stands below a run's scores: what was planned of them."""
    with reading() as connection:
        return reporting(read_plan(find_run(connection, run).provenance))


def _facts(connection: Connection, record: RunRecord, plan: Plan) -> RunFacts:
    asked = read_asked_digests(connection, record.id)
    named = plan.comparison.runs if plan.comparison else ()
    return RunFacts(
        questions=asked,
        ends=read_ends(connection, record.id),
        corpora=_revisions(plan.binding.corpora),
        compared=tuple(_compared(connection, each, plan) for each in named),
        budgets=read_budgets(connection, record.id),
        **msgspec.structs.asdict(read_irregularities(connection, record.id)),
    )


def _revisions(names: Collection[str]) -> dict[str, str | None]:
    """The present revisions of corpora, None of those that aren't there; empty where their store doesn't answer.

    names: those under which corpora are stored, as runs pin them.
    """
    try:
        manifests = corpora_of(settings()).manifests() if names else {}
    except UnavailableError:
        return {}
    return {name: manifests[name].revision if name in manifests else None for name in names}


def _compared(connection: Connection, named: str, plan: Plan) -> ComparedRun:
    run = _found(connection, named)
    if run is None:
        return ComparedRun(named=named)
    of_run = read_irregularities(connection, run)
    same = read_asked_digests(connection, run) == plan.questions
    return ComparedRun(named=named, run=run, unended=of_run.unended + of_run.blocked, same=same)


def _found(connection: Connection, named: str) -> str | None:
    """The id of the run that a plan names; None where there is none, or it may be several."""
    try:
        return resolve_run(connection, named)
    except (UnknownNameError, InputError):
        experiment, _, cell = named.partition("/")
    try:
        return read_experiment(connection, experiment).runs.get(cell)
    except UnknownNameError:
        return None


UNPLANNED = "none: the run was submitted before plans were recorded"


def planned(described: RunPlan) -> Iterator[tuple[str, str]]:
    """What was planned, and when it was sealed."""
    plan = described.plan
    if plan is None:
        yield "plan", UNPLANNED
        return
    yield "sealed", f"{moment(described.sealed)}, before the first step"
    if plan.hypothesis:
        yield "hypothesis", plan.hypothesis
    yield "metrics", ", ".join(plan.metrics)
    yield "primary", plan.primary or "none: nothing is published that answers could be compared with"
    yield "comparison", "none" if plan.comparison is None else _compared_words(plan.comparison)
    yield from _asked(plan)
    yield from _system(plan)
    yield from _limits(plan)


def _compared_words(comparison: PlannedComparison) -> str:
    least = comparison.smallest_difference
    matters = "" if least is None else f", differences of {least:g} or more matter"
    others = " and ".join(comparison.runs)
    return f"with {others} by {comparison.metric}, alpha {comparison.alpha:g}{matters}"


def _asked(plan: Plan) -> Iterator[tuple[str, str]]:
    limit = "" if plan.limit is None else f", the first {plan.limit:,} of the file"
    yield "questions", f"{plan.questions.count:,} of {plan.dataset}{limit}, SHA-256 {shortened(plan.questions.asked)}"
    yield "answers", f"SHA-256 {shortened(plan.questions.answers)}"
    yield "gold", f"SHA-256 {shortened(plan.questions.gold)}"


def _system(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "system", f"{plan.system}, version {plan.system_version}, settings SHA-256 {shortened(plan.settings)}"
    for form, digest in plan.demonstrations.items():
        yield "demonstrations", f"{form}, SHA-256 {shortened(digest)}"
    for name, revision in plan.binding.corpora.items():
        yield "corpus", f"{name}, revision {shortened(revision)}"
    for role in (*OWN_FIELDS, *plan.binding.pins):
        if identity := plan.binding.engine(role):
            yield role.replace("_", " "), shortened(identity)
    yield "profile", f"{plan.binding.profile}, temperature {plan.binding.temperature:g}, seed {plan.binding.seed}"
    if plan.cell:
        yield "experiment", f"{plan.experiment}, {plan.cell}"
    if plan.origin:
        yield "origin", f"{plan.origin}, forked at {plan.forked_at or 'the first step that differs'}"


def _limits(plan: Plan) -> Iterator[tuple[str, str]]:
    yield from plan.budgets.named()
    if plan.until:
        yield "until", plan.until
