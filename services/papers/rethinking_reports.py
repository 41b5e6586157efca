"""Runs of Rethinking with Retrieval and its baselines beside what the paper reports."""

from collections.abc import Iterable

from msgspec.structs import replace
from sqlalchemy import Connection

from cotrail.evaluation.experiments.experiment_report import ExperimentReport
from cotrail.evaluation.experiments.rethinking.runs import read_run
from cotrail.evaluation.experiments.rethinking.tables import comparison
from cotrail.services.papers.recorded import recorded_run
from cotrail.services.views.reports.reported_runs import read_reported_runs


def compare(connection: Connection, ids: Iterable[str]) -> ExperimentReport:
    """The tables and the figure for these runs; InputError where one is of none of the paper's tasks."""
    behind = {run_id: run_id for run_id in ids}
    compared = comparison([read_run(recorded_run(connection, run_id)) for run_id in behind])
    return replace(compared, runs=read_reported_runs(connection, behind))
