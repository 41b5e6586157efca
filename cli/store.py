"""The store as the command line reaches it: every failure to reach it says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import StatementError

from configuration.settings import settings
from cotrail.errors import InputError, UnavailableError
from models.schema.database import IDLE_SECONDS, connect, reason_of, refused, unanswered

RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="The run's id, the beginning of it, or `latest`.", show_default=False)
]


@contextmanager
def open_store(*, idle_seconds: float | None = IDLE_SECONDS) -> Iterator[Engine]:
    """An engine on the database that the settings name.

    idle_seconds: how long its transactions may do nothing; None for ever.
    UnavailableError: it can't be used. InputError: it can't hold what it was to hold.
    """
    engine = connect(settings().database, idle_seconds=idle_seconds)
    try:
        yield engine
    except StatementError as error:
        if unanswered(error):
            raise UnavailableError(_unreachable(error)) from error
        if refused(error):
            raise InputError(f"the database can't hold what was handed in: {reason_of(error)}; correct it") from error
        if getattr(error.orig, "sqlstate", None) != "42P01":  # undefined_table
            raise
        raise UnavailableError("the database has no tables yet; `cotrail up` makes them") from error
    finally:
        engine.dispose()


@contextmanager
def reading() -> Iterator[Connection]:
    """A connection for reading one moment of the store, whatever workers write meanwhile.

    It may be idle for as long as whoever reads the output takes, and can't write, so that it holds up nobody.
    """
    with open_store(idle_seconds=None) as engine, engine.connect() as connection:
        yield connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _unreachable(error: Exception) -> str:
    reason = reason_of(error)
    if settings().database_url is None:
        return f"the local stack's database doesn't answer; start it with `cotrail up` ({reason})"
    return f"the database that COTRAIL_DATABASE_URL names doesn't answer; check the URL and the server ({reason})"
