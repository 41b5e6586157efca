"""Connections to the store, whose failures say what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from cotrail.configuration.settings import settings
from cotrail.models.schema.database import IDLE_SECONDS, connect
from cotrail.models.schema.refusals import explained


@contextmanager
def open_store(*, idle_seconds: float | None = IDLE_SECONDS) -> Iterator[Engine]:
    """An engine on the database that the settings name.

    idle_seconds: the longest that a transaction may be idle; None: no limit.
    Raises, from within the block too, UnavailableError where it can't be used, InputError where it can't hold a value.
    """
    engine = connect(settings().database, idle_seconds=idle_seconds)
    try:
        with explained():
            yield engine
    finally:
        engine.dispose()


@contextmanager
def reading() -> Iterator[Connection]:
    """A read-only connection that sees one snapshot of the store, whatever workers write meanwhile."""
    # Output to a pipe waits for its reader, so the transaction may be idle for long; as it can't write, no
    # worker waits for it.
    with open_store(idle_seconds=None) as engine, engine.connect() as connection:
        yield connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
