"""The process's connections to the store, whose failures say what to do; one for a reader of SQL."""

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import psycopg
from sqlalchemy import Connection, Engine, text
from sqlalchemy.engine import URL, make_url

from cotrail.configuration.settings import settings
from cotrail.errors import UnavailableError
from cotrail.models.records.idempotency import IDEMPOTENCY, KeyedRequest
from cotrail.models.records.projects import PROJECT
from cotrail.models.schema.database import CONNECTION_SETTINGS, connect, explained, reason_of
from cotrail.models.schema.deployment import reader_comment, reader_name, reader_password, refuse_unreleased
from cotrail.services.actor import actor

if TYPE_CHECKING:
    from cotrail.models.schema.migrating import Migrated

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
    with open_store() as engine, reading_from(engine) as connection:
        yield connection


@contextmanager
def reading_from(engine: Engine) -> Iterator[Connection]:
    """The same from the store that is open."""
    with engine.connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        # Output to a pipe waits for its reader, and a slow machine takes its time between two statements, so the
        # transaction may be idle for long; as it can't write, no worker waits for it.
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


_WRITES = text(
    "SELECT coalesce(bool_or(has_table_privilege(oid, 'INSERT, UPDATE, DELETE, TRUNCATE')"
    " OR pg_has_role(relowner, 'MEMBER')), true)"
    " FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
)

HOW_TO_MAKE_IT = "`cotrail up`, or `cotrail migrate` for a server of your own, makes it"


def reader_address() -> str:
    """The database's URL under a role that can't write: the settings' own, or else the one that migrating made.

    Raises UnavailableError where there is none, or the server doesn't let it in.
    """
    own = make_url(settings().database)
    with reading() as connection:
        if not connection.execute(_WRITES).scalar_one():
            return _written(own)
        driver: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
        role, password = reader_name(driver.info.dbname), reader_password(driver)
        _check_exists(connection, role)
    address = _written(own.set(username=role, password=password))
    try:
        psycopg.connect(address, **CONNECTION_SETTINGS).close()  # type: ignore[arg-type]
    except psycopg.OperationalError as error:
        raise UnavailableError(
            f"the server doesn't let in {role}, the role that only reads ({reason_of(error)}): {HOW_TO_MAKE_IT} again; "
            "or set COTRAIL_DATABASE_URL to a role of your own that can't write"
        ) from error
    return address


def _check_exists(connection: Connection, role: str) -> None:
    if reader_comment(connection, role) is None:
        raise UnavailableError(
            f"the server has no role {role}, which only reads: {HOW_TO_MAKE_IT}, as a user who may make roles; or set "
            "COTRAIL_DATABASE_URL to a role of your own that can't write"
        )


def _written(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def migrate() -> "Migrated":
    """Bring the tables of the database that the settings name up to the revision of this code.

    Raises UnavailableError where the database doesn't answer, doesn't let this user in or lets it make no tables, and
    InputError where a newer cotrail has migrated it.
    """
    from cotrail.models.schema import migrating

    with explained(local=settings().database_url is None):
        return migrating.migrate(settings().database)
