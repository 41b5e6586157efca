"""The process's connections to the store, whose failures say what to do."""

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from sqlalchemy import Connection, Engine

from cotrail.configuration.settings import settings
from cotrail.models.records.idempotency import IDEMPOTENCY, KeyedRequest
from cotrail.models.records.projects import PROJECT
from cotrail.models.schema.database import connect
from cotrail.models.schema.deployment import refuse_unreleased
from cotrail.models.schema.refusals import explained
from cotrail.services.actor import actor

_opened: dict[str, Engine] = {}
_opening = Lock()


@contextmanager
def open_store() -> Iterator[Engine]:
    """The engine on the database that the settings name: one pool of connections for all threads of the process.

    Its connections see what the one sees in whose name the thread works (`cotrail.services.actor`).

    Raises, from within the block too, UnavailableError where it can't be used, InputError where it can't hold a value
    or was made before the first release.
    """
    with explained(local=settings().database_url is None):
        who = actor()
        request = KeyedRequest(*who.idempotency) if who.idempotency else None
        yield _engine(settings().database).execution_options(**{PROJECT: who.project, IDEMPOTENCY: request})


@contextmanager
def reading() -> Iterator[Connection]:
    """A read-only connection that sees one snapshot of the store, unaffected by what workers write in the meantime."""
    with open_store() as engine, engine.connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        # Output to a pipe waits for its reader, so the transaction may be idle for long; as it can't write, no
        # worker waits for it.
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        yield connection


@atexit.register
def close_stores() -> None:
    """Closes all connections; who asks for the store next opens new ones."""
    with _opening:
        while _opened:
            _opened.popitem()[1].dispose()


def _engine(url: str) -> Engine:
    with _opening:
        if url in _opened:
            return _opened[url]
    # Outside the lock: where the server doesn't answer, threads don't wait for each other's tries.
    engine = connect(url, idles=True)
    try:
        with engine.connect() as connection:
            refuse_unreleased(connection)
    except BaseException:
        engine.dispose()
        raise
    with _opening:
        kept = _opened.setdefault(url, engine)
    if kept is not engine:
        engine.dispose()
    return kept
