"""The runs behind a report: their configurations, and each run's own page beside the report."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sqlalchemy import Connection

from cotrail.errors import InputError
from cotrail.evaluation.experiments.experiment_report import ReportedRun
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.runs import read_run
from cotrail.services.reports.configuration import configuration
from cotrail.services.reports.run_report import run_report


def read_reported_runs(connection: Connection, ids: Mapping[str, str]) -> tuple[ReportedRun, ...]:
    """The runs as they stand; ids: by the names that they have in the report."""
    return tuple(_reported(connection, name, run_id) for name, run_id in ids.items())


def write_run_pages(connection: Connection, runs: Iterable[ReportedRun], directory: Path) -> Iterator[Path]:
    """Writes each run's own page, with all its questions, below the directory; yields each file once it is written.

    Raises InputError where it can't be written.
    """
    for run in runs:
        path = directory / run.page
        html = run_report(connection, run.id).html
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(html, "utf-8")
        except OSError as error:
            raise InputError(f"{path} can't be written ({error.strerror}); choose another directory") from error
        yield path


def _reported(connection: Connection, name: str, run_id: str) -> ReportedRun:
    record = read_run(connection, run_id)
    facts = tuple((each.strip(), value) for each, value in configuration(record))
    return ReportedRun(name=name, id=run_id, state=read_progress(connection, run_id).state, facts=facts)
