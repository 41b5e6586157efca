"""Rethinking with Retrieval: its runs and its baselines' beside what the paper reports."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection

from cotrail.evaluation.experiments.charts import Chart
from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.papers.experiment_reports import ExperimentReport
from cotrail.services.papers.rethinking_reports import compare
from cotrail.services.runs.named_runs import resolve_run
from cotrail.services.store import reading
from cotrail.services.views.reports.documents import report_page
from cotrail.services.views.reports.sheets import Sheet, sheet

TITLE = "Rethinking with retrieval"


class ComparedRuns(Struct, frozen=True, kw_only=True):
    """The tables of these runs: their values, and the same as texts to lay out.

    summary: what the numbers are; figure: accuracy by number of chains, where a run has several.
    """

    tables: tuple[dict[str, Any], ...]
    sheets: tuple[Sheet, ...]
    summary: str
    figure: Chart | None


@operation("GET", "/rethinking", Scope.READ)
def show(runs: Sequence[str]) -> ComparedRuns:
    """Compare runs of `rethinking` and its baselines with one another and with what the paper reports."""
    with reading() as connection:
        report = _report(connection, runs)
    return ComparedRuns(
        tables=msgspec.to_builtins(report.tables),
        sheets=tuple(map(sheet, report.tables)),
        summary=report.summary,
        figure=next(iter(report.plots), None),
    )


@operation("GET", "/rethinking/page", Scope.READ, answers="stream", media_type="text/html; charset=utf-8")
def page(runs: Sequence[str]) -> Iterator[bytes]:
    """Give the same as one HTML page, with the figure and each run's configuration."""
    with reading() as connection:
        report = _report(connection, runs)
    yield report_page(TITLE, report).encode()


def _report(connection: Connection, runs: Sequence[str]) -> ExperimentReport:
    return compare(connection, [resolve_run(connection, run) for run in runs])
