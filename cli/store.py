"""The store as the command line reaches it: every failure to reach it says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import InterfaceError, OperationalError, ProgrammingError

from cotrail.errors import UnavailableError
from models.database import IDLE_SECONDS, connect
from tasks.settings import settings

RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="The run's id, the beginning of it, or `latest`.", show_default=False)
]


@contextmanager
def open_store(*, idle_seconds: float | None = IDLE_SECONDS) -> Iterator[Engine]:
    """An engine on the database that the settings name; UnavailableError where it can't be used.

    idle_seconds: how long its transactions may do nothing; None for ever.
    """
    engine = connect(settings().database, idle_seconds=idle_seconds)
    try:
        yield engine
    except (OperationalError, InterfaceError) as error:
        raise UnavailableError(_unreachable(error)) from error
    except ProgrammingError as error:
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


def reason_of(error: Exception) -> str:
    """What the driver says of an error, in a line."""
    said = str(getattr(error, "orig", None) or error).strip().splitlines()
    return said[0] if said else type(error).__name__


def _unreachable(error: Exception) -> str:
    reason = reason_of(error)
    if settings().database_url is None:
        return f"the local stack's database doesn't answer; start it with `cotrail up` ({reason})"
    return f"the database that COTRAIL_DATABASE_URL names doesn't answer; check the URL and the server ({reason})"
