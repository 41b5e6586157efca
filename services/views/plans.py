"""The plan of a run as it was sealed, and where the run departed from it."""

from collections.abc import Collection
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.audit.plan_check import PLAN, plan_digest
from cotrail.configuration.corpora import corpora_of
from cotrail.configuration.settings import settings
from cotrail.errors import InputError, UnavailableError, UnknownNameError
from cotrail.evaluation.plans.deviations import ComparedRun, RunFacts, deviations, remarks, reporting, unplanned
from cotrail.evaluation.plans.plan import Plan, read_plan
from cotrail.models.queries.experiments import read_experiment
from cotrail.models.queries.irregularities import read_irregularities
from cotrail.models.queries.progress import read_ends
from cotrail.models.queries.submitted_questions import read_asked_digests
from cotrail.services.runs.named_runs import RunRecord, find_run, resolve_run
from cotrail.services.views.run_plan import RunPlan as RunPlan


def describe_plan(connection: Connection, run: str) -> RunPlan:
    """The plan of a run; run: its id, the beginning of it, its name, or `latest`."""
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


def unplanned_of(
    connection: Connection, record: RunRecord, metrics: Collection[str], runs: Collection[str]
) -> tuple[str, ...] | None:
    """What of a comparison a run's plan doesn't have: metrics by name, and the other runs, by id.

    None where its plan names no comparison.
    """
    plan = resolved_plan(connection, record)
    return None if plan is None or plan.comparison is None else unplanned(plan, metrics, runs)


def reporting_of(connection: Connection, run: str, dataset: str | None = None) -> tuple[str, ...]:
    """What stands below a run's scores: what was planned of them; dataset: by whose rules they are, if named."""
    return reporting(read_plan(find_run(connection, run).provenance), dataset)


def _facts(connection: Connection, record: RunRecord, plan: Plan) -> RunFacts:
    asked = read_asked_digests(connection, record.id)
    happened: dict[str, Any] = msgspec.structs.asdict(read_irregularities(connection, record.id))
    named = plan.comparison.runs if plan.comparison else ()
    return RunFacts(
        questions=asked,
        ends=read_ends(connection, record.id),
        corpora=_revisions(plan.binding.corpora),
        compared=tuple(_compared(connection, each, plan) for each in named),
        **happened,
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
