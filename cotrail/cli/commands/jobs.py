"""`cotrail jobs`: queued work that isn't a run's."""

from typing import Annotated

import typer

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import console, grid, heading, print_json
from cotrail.common.humanize import moment
from cotrail.errors import InputError
from cotrail.services.runs import jobs as operations
from cotrail.services.runs.jobs import Job

COLUMNS = (
    Column(title="job"),
    Column(title="makes"),
    Column(title="state"),
    Column(title="progress", right=True),
    Column(title="queued"),
)


def jobs(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="JOB | cancel JOB", help="A job to show, or to cancel.", show_default=False),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """List the jobs of a server, show one, or cancel one.

    A server indexes corpora and conducts experiments as jobs; the processes beside maintenance carry them out.
    """
    match words or []:
        case []:
            _list(json=json)
        case [job]:
            _show(operations.show_job(job), json=json)
        case ["cancel", job]:
            _show(operations.cancel(job), json=json)
        case _:
            raise InputError("`cotrail jobs JOB` shows a job, `cotrail jobs cancel JOB` cancels it")


def _list(*, json: bool) -> None:
    page = operations.show_jobs()
    if json:
        print_json(page)
    elif page.jobs:
        print_rows(console(), COLUMNS, [_row(each) for each in page.jobs])
    else:
        console().print("No jobs yet.")


def _show(job: Job, *, json: bool) -> None:
    if json:
        print_json(job)
        return
    about = grid("dim", "")
    about.add_row("makes", job.name)
    about.add_row("state", job.state)
    about.add_row("progress", f"{job.progress:,}")
    about.add_row("queued", moment(job.created_at))
    if job.error is not None:
        about.add_row("error", job.error.message)
    screen = console()
    screen.print(heading(job.job))
    screen.print(about)


def _row(each: Job) -> list[str]:
    return [each.job, each.name, each.state, f"{each.progress:,}", moment(each.created_at)]
