"""`cotrail rethinking`: runs of Rethinking with Retrieval and its baselines beside what the paper reports."""

from pathlib import Path
from typing import Annotated

import typer

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.columns import print_tables
from cotrail.cli.terminal.output import console, print_json, write_text
from cotrail.errors import InputError
from cotrail.services.results import experiment_reports
from cotrail.services.results.reports.figures import svg_of


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
    compared = experiment_reports.show_rethinking(runs)
    contents = {}
    if svg:
        contents[svg] = _figure(compared)
    if html:
        contents[html] = b"".join(experiment_reports.rethinking_page(runs)).decode()
    for path, content in contents.items():
        write_text(path, content, "choose another path")
    if json:
        print_json({"tables": compared.tables})
        return
    screen = console()
    print_tables(compared.sheets, screen)
    screen.print()
    screen.print(compared.summary, style="dim")
    for path in contents:
        screen.print(f"Wrote {path}.", soft_wrap=True)


def _figure(compared: experiment_reports.ComparedRuns) -> str:
    if compared.figure is None:
        raise InputError("there is no figure, since no run has several chains; leave --svg out or name such a run")
    return svg_of(compared.figure)
