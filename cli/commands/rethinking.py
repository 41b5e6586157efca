"""`cotrail rethinking`: runs of Rethinking with Retrieval and its baselines beside what the paper reports."""

from pathlib import Path
from typing import Annotated

import typer

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.files import write_text
from cotrail.cli.terminal.output import console, print_json
from cotrail.cli.terminal.tables import print_tables
from cotrail.errors import InputError
from cotrail.services.papers.experiment_reports import ExperimentReport
from cotrail.services.papers.rethinking_reports import compare
from cotrail.services.runs.named_runs import resolve_run
from cotrail.services.store import reading
from cotrail.services.views.reports.documents import report_page
from cotrail.services.views.reports.figures import svg_of
from cotrail.services.views.reports.sheets import sheet

TITLE = "Rethinking with retrieval"


def rethinking(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Runs' ids, the beginnings of them, or `latest`.", show_default=False),
    ],
    *,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write the tables and the figure as a page.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="PATH", help="Write the figure: accuracy by number of chains.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare runs of `rethinking` and its baselines with one another and with what the paper reports.

    Accuracy with fewer chains is computed from the stored ones, without a model. A question without an answer
    counts as wrong.

    Example: `cotrail rethinking rethinking-20250301-4be0c1 self-consistency-20250301-77a2d0 --html report.html`
    """
    with reading() as connection:
        report = compare(connection, [resolve_run(connection, run) for run in runs])
    files = write_files(report, html, svg)
    if json:
        print_json({"tables": report.tables})
        return
    screen = console()
    print_tables(map(sheet, report.tables), screen)
    screen.print()
    screen.print(report.summary, style="dim")
    for path in files:
        screen.print(f"Wrote {path}.", soft_wrap=True)


def write_files(report: ExperimentReport, html: Path | None, svg: Path | None) -> list[Path]:
    """Writes the page and the figure, as far as paths are given; returns these."""
    contents = {}
    if svg:
        if not report.plots:
            raise InputError("there is no figure, since no run has several chains; leave --svg out or name such a run")
        contents[svg] = svg_of(report.plots[0])
    if html:
        contents[html] = report_page(TITLE, report)
    for path, content in contents.items():
        write_text(path, content, "choose another path")
    return list(contents)
