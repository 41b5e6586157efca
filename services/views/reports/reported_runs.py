"""The runs behind a report, with their configurations."""

from collections.abc import Mapping

from sqlalchemy import Connection

from cotrail.evaluation.experiments.experiment_report import ReportedRun
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.runs import read_run
from cotrail.services.views.reports.configuration import configuration


def read_reported_runs(connection: Connection, ids: Mapping[str, str]) -> tuple[ReportedRun, ...]:
    """The runs as they stand; ids: by the names that they have in the report."""
    return tuple(_reported(connection, name, run_id) for name, run_id in ids.items())


def _reported(connection: Connection, name: str, run_id: str) -> ReportedRun:
    record = read_run(connection, run_id)
    facts = tuple((each.strip(), value) for each, value in configuration(record))
    return ReportedRun(name=name, id=run_id, state=read_progress(connection, run_id).state, facts=facts)
