"""Connections to the store, whose failures say what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import StatementError

from configuration.settings import settings
from cotrail.errors import InputError, UnavailableError
from models.schema.database import IDLE_SECONDS, connect, reason_of, refused, unanswered


@contextmanager
def open_store(*, idle_seconds: float | None = IDLE_SECONDS) -> Iterator[Engine]:
    """An engine on the database that the settings name.

    idle_seconds: the longest that a transaction may be idle; None: no limit.
    Raises, from within the block too, UnavailableError where it can't be used, InputError where it can't hold a value.
    """
    engine = connect(settings().database, idle_seconds=idle_seconds)
    try:
        yield engine
    except StatementError as error:
        if unanswered(error):
            raise UnavailableError(_unreachable(error)) from error
        if refused(error):
            raise InputError(f"the database can't hold a value of the input: {reason_of(error)}; correct it") from error
        # undefined_table: a new server on which no migration has run.
        if getattr(error.orig, "sqlstate", None) != "42P01":
            raise
        raise UnavailableError("the database has no tables yet; `cotrail up` makes them") from error
    finally:
        engine.dispose()


@contextmanager
def reading() -> Iterator[Connection]:
    """A read-only connection that sees one snapshot of the store, whatever workers write meanwhile."""
    # Output to a pipe waits for its reader, so the transaction may be idle for long; as it can't write, no
    # worker waits for it.
    with open_store(idle_seconds=None) as engine, engine.connect() as connection:
        yield connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _unreachable(error: Exception) -> str:
    reason = reason_of(error)
    if "starting up" in reason:
        return f"the database is starting; try again in a few seconds ({reason})"
    if settings().database_url is None:
        return f"the local stack's database doesn't answer; start it with `cotrail up` ({reason})"
    return f"the database that COTRAIL_DATABASE_URL names doesn't answer; check the URL and the server ({reason})"
