"""`cotrail report`: a run as one HTML file that needs nothing else."""

from pathlib import Path
from typing import Annotated

import typer

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.files import write_text
from cotrail.cli.terminal.output import console, print_json
from cotrail.common.humanize import count
from cotrail.services.runs.named_runs import resolve_run
from cotrail.services.store import reading
from cotrail.services.views.reports.run_report import run_report


def report(
    run: RunName,
    html: Annotated[Path, typer.Option("--html", metavar="PATH", help="The file to write.", show_default=False)],
    *,
    json: Json = False,
) -> None:
    """Write a run as one HTML file: configuration, scores, and the reasoning behind every answer.

    The file needs no network, and everything is there without its script.

    Example: `cotrail report latest --html report.html`
    """
    with reading() as connection:
        run_id = resolve_run(connection, run)
        document = run_report(connection, run_id)
    write_text(html, document.html, "choose another --html")
    if json:
        print_json({"run": run_id, "html": str(html), "questions": document.questions})
    else:
        console().print(f"Wrote {html} with {count(document.questions, 'question')}.", soft_wrap=True)
