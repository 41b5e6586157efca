"""`cotrail report`: a run as one HTML file that needs nothing else."""

from pathlib import Path
from typing import Annotated

import typer

from cotrail.cli.arguments import Json, RunName
from cotrail.cli.terminal.output import console, print_json, write_text
from cotrail.common.humanize import count
from cotrail.services.results.reports import run_report
from cotrail.services.runs import labels


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
    found = labels.identify(run)
    write_text(html, b"".join(run_report.show_report(found.run)).decode(), "choose another --html")
    if json:
        print_json({"run": found.run, "html": str(html), "questions": found.questions})
    else:
        console().print(f"Wrote {html} with {count(found.questions, 'question')}.", soft_wrap=True)
