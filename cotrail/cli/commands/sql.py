"""`cotrail sql`: the database in psql, for reading, or its URL for other programs."""

import os
import shutil
import sys
from typing import Annotated, NoReturn

import typer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cotrail.cli.arguments import Json
from cotrail.cli.terminal.output import print_json
from cotrail.engines.optional_packages import install_extra
from cotrail.errors import InputError, UnavailableError
from cotrail.services.reader import reader_address


def sql(
    query: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="Run this and exit, instead of asking for queries.", show_default=False),
    ] = None,
    *,
    url: Annotated[bool, typer.Option("--url", help="Print the database's URL, for other programs.")] = False,
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
    from cotrail.workers.stack.wheels import package_folder

    try:
        return str(package_folder(PACKAGE, extra="local").parent / PROGRAMS / "psql")
    except UnavailableError as error:
        if program := shutil.which("psql"):
            return program
        raise UnavailableError(
            f"psql isn't installed: install PostgreSQL's client, or `{install_extra('local')}`"
        ) from error
