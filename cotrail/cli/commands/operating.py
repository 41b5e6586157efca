"""What an operator asks for: `cotrail logs`, `doctor`, `jobs`, `migrate` and `sql`."""

import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, NoReturn

import typer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cotrail.cli.request_options import Json, argument, completing, option
from cotrail.cli.terminal.output import console, grid, heading, in_json, print_json, print_rows, titled
from cotrail.common.humanize import moment
from cotrail.common.nearest import unknown
from cotrail.common.optional_packages import install_extra
from cotrail.common.printable_text import without_commands
from cotrail.configuration.settings import settings
from cotrail.errors import InputError, UnavailableError, UnknownNameError
from cotrail.services.runs import jobs as operations
from cotrail.services.runs.jobs import Job
from cotrail.services.store import reader_address

POLL_SECONDS = 0.2

LINE_COUNT = 40
"""The number of last lines that are printed by default."""


def _names() -> tuple[str, ...]:
    from cotrail.workers.stack.status import NAMES

    return NAMES


def logs(
    process: Annotated[str, argument("logs.process", autocompletion=completing(_names))],
    *,
    lines: Annotated[int, option("logs.lines")] = LINE_COUNT,
    follow: Annotated[bool, option("logs.follow")] = False,
) -> None:
    """Print the end of the log of a process of the local stack.

    Example: `cotrail logs generation --follow`
    """
    path = _log_of(process)
    if not path.exists():
        raise InputError(f"{process} has no log yet: `cotrail up` starts it, unless the settings name a server instead")
    with path.open("rb") as file:
        for line in deque(file, lines):
            _print(line)
        position = file.tell()
    if follow:
        for line in appended(path, position):
            _print(line)


def _log_of(process: str) -> Path:
    from cotrail.workers.logs import log_path

    if process not in _names():
        raise UnknownNameError(unknown("process", process, _names()))
    return log_path(settings().home, process)


def appended(path: Path, position: int) -> Iterator[bytes]:
    """Yield the lines that are written behind a position of a log, also after it was rotated; never ends."""
    while True:
        with path.open("rb") as file:
            file.seek(position)
            yield from _until_rotated(path, file)
        position = 0


def _until_rotated(path: Path, file: BinaryIO) -> Iterator[bytes]:
    line = b""
    while True:
        line += file.readline()
        if line.endswith(b"\n"):
            yield line
            line = b""
        elif _is_rotated(path, file):
            return
        else:
            time.sleep(POLL_SECONDS)


def _is_rotated(path: Path, file: BinaryIO) -> bool:
    # Between the move of a log and the beginning of the next one, there is none.
    if not path.exists():
        return False
    current, opened_file = path.stat(), os.fstat(file.fileno())
    return current.st_ino != opened_file.st_ino or current.st_size < file.tell()


def _print(line: bytes) -> None:
    typer.echo(without_commands(line.decode(errors="replace").rstrip("\n")))


WRONG = 3
"""The exit code where something is wrong."""


def doctor(*, json: Json = False) -> None:
    """Look whether this host, PostgreSQL, Redis, the search server, models and workers are as they have to be.

    Each line says what was found and, where that isn't right, what to do. Nothing is changed. It takes a few seconds,
    longer where a server doesn't answer. Exits with 3 where something is wrong.
    """
    from cotrail.cli.terminal.diagnosis import print_diagnosis
    from cotrail.cli.terminal.output import in_json
    from cotrail.services import diagnosing
    from cotrail.workers.celery_app import app

    found = diagnosing.diagnose(lambda: app)
    if not in_json(found, json=json):
        print_diagnosis(found)
    if found.wrong:
        raise typer.Exit(WRONG)


COLUMNS = titled("job", "makes", "state", "progress", "queued", right=("progress",))


def jobs(words: Annotated[list[str] | None, argument("jobs.words")] = None, *, json: Json = False) -> None:
    """List the jobs of a server, show one, or cancel one.

    A server indexes corpora and conducts experiments as jobs; processes alongside maintenance carry them out.
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
        rows = [[job.job, job.name, job.state, f"{job.progress:,}", moment(job.created_at)] for job in page.jobs]
        print_rows(console(), COLUMNS, rows)
    else:
        console().print("No jobs yet.")


def _show(job: Job, *, json: bool) -> None:
    if in_json(job, json=json):
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


def migrate(*, json: Json = False) -> None:
    """Bring the database's tables up to date: before the first start on a server of your own, and at each upgrade.

    `cotrail up` does so for the local stack. Live workers do no harm, and neither does a second migration at once.
    """
    from cotrail.cli.terminal.output import console, print_json
    from cotrail.services.store import migrate as carry_out

    revisions = carry_out()
    if json:
        print_json(revisions)
    elif revisions.before == revisions.after:
        console().print(f"The database is up to date (revision {revisions.after}).", soft_wrap=True)
    elif revisions.before is None:
        console().print(f"The tables are made (revision {revisions.after}).", soft_wrap=True)
    else:
        console().print(f"Migrated from revision {revisions.before} to {revisions.after}.", soft_wrap=True)


def sql(
    query: Annotated[str | None, argument("sql.query")] = None,
    *,
    url: Annotated[bool, option("sql.url")] = False,
    json: Json = False,
) -> None:
    """Open the database in psql, for reading only; docs/store.md describes the tables.

    psql is the local stack's, or else the one on the PATH. It connects as a role that can't write, and so do programs
    with the URL that --url prints; --json prints that as JSON.

    Example: `cotrail sql "SELECT id, state FROM run_states"`
    """
    if query is not None and (url or json):
        raise InputError("the URL is printed, or a query is run: leave out QUERY, or --url and --json")
    address = reader_address()
    if json:
        print_json({"url": address})
    elif url:
        typer.echo(address)
    else:
        _open(address, query)


def _open(address: str, query: str | None) -> NoReturn:
    parts = conninfo_to_dict(address)
    environment = dict(os.environ)
    # Every user of the host sees a process's arguments.
    if password := parts.pop("password", None):
        environment["PGPASSWORD"] = str(password)
    command = [_psql(), make_conninfo("", **parts), *([] if query is None else ["--command", query])]
    sys.stdout.flush()
    os.execvpe(command[0], command, environment)  # noqa: S606 - a list, as everywhere


def _psql() -> str:
    from cotrail.workers.stack.postgres import PACKAGE, PROGRAMS
    from cotrail.workers.stack.python import package_folder

    try:
        return str(package_folder(PACKAGE, extra="local").parent / PROGRAMS / "psql")
    except UnavailableError as error:
        if program := shutil.which("psql"):
            return program
        raise UnavailableError(
            f"psql isn't installed: install PostgreSQL's client, or `{install_extra('local')}`"
        ) from error
