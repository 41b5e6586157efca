"""Experiments: conducted as jobs, listed, shown, reported."""

from typing import Any

import msgspec
from msgspec import Struct

from cotrail.evaluation.experiments.charts import Chart
from cotrail.evaluation.experiments.experiment_report import ReportedRun
from cotrail.models.queries.experiments import experiment_ids
from cotrail.services.access.actor import Scope
from cotrail.services.jobs.experiments import queue_experiment
from cotrail.services.jobs.job import Job
from cotrail.services.operations.jobs import queued, queued_before
from cotrail.services.operations.operation import operation
from cotrail.services.papers.described import DescribedExperiment, describe_experiment, resolve_experiment
from cotrail.services.papers.experiment_reports import read_report
from cotrail.services.papers.sent_files import ExperimentRequest
from cotrail.services.store import reading
from cotrail.services.views.reports.sheets import Sheet, sheet


class ReportedExperiment(Struct, frozen=True, kw_only=True):
    """An experiment's results beside the published figures; see `ExperimentReport`.

    tables: their values; sheets: the same as texts to lay out.
    """

    experiment: str
    subject: str
    summary: str
    tables: tuple[dict[str, Any], ...]
    sheets: tuple[Sheet, ...]
    plots: tuple[Chart, ...]
    runs: tuple[ReportedRun, ...]
    plan: tuple[tuple[str, str], ...]


@operation("POST", "/experiments", Scope.SUBMIT, status=202, again=queued_before)
def conduct(request: ExperimentRequest) -> Job:
    """Queue an experiment to be conducted until its runs are done; one that was begun continues.

    What it came to, and meanwhile how far it is, is the job's result.
    """
    return queued(lambda connection: queue_experiment(connection, request))


@operation("GET", "/experiments", Scope.READ)
def index() -> tuple[str, ...]:
    """List the experiments by name, the newest first."""
    with reading() as connection:
        return tuple(experiment_ids(connection))


@operation("GET", "/experiments/{experiment}", Scope.READ)
def show(experiment: str) -> DescribedExperiment:
    """Show an experiment's plan and its runs; `latest` is the newest."""
    with reading() as connection:
        return describe_experiment(connection, experiment)


@operation("GET", "/experiments/{experiment}/report", Scope.READ)
def report(experiment: str) -> ReportedExperiment:
    """Report an experiment's results so far, beside the published figures."""
    with reading() as connection:
        name = resolve_experiment(connection, experiment)
        found = read_report(connection, name)
    return ReportedExperiment(
        experiment=name,
        subject=found.subject,
        summary=found.summary,
        tables=msgspec.to_builtins(found.tables),
        sheets=tuple(map(sheet, found.tables)),
        plots=found.plots,
        runs=found.runs,
        plan=found.plan,
    )
