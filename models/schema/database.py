"""Connections to PostgreSQL, and its schema."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from alembic import command
from alembic.config import Config
from psycopg import InterfaceError, OperationalError
from psycopg.errors import DeadlockDetected, ProtocolViolation
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from tenacity import retry, retry_if_exception_cause_type, stop_after_attempt

from cotrail.errors import InputError

IDLE_SECONDS = 10
"""How long a transaction may do nothing: a process that is frozen within one would hold up all that it has locked."""

TRIES = 10
"""How often a migration is begun that live workers get in the way of."""

MOST_SAID = 500
"""How many characters are repeated of what the driver says of an error."""

MIGRATIONS = Path(__file__).parents[2] / "migrations"


SESSION = (
    # A client that is gone without a word would else keep its session, and with it its locks, for two hours.
    "tcp_keepalives_idle = 5",
    "tcp_keepalives_interval = 2",
    "tcp_keepalives_count = 3",
    "tcp_user_timeout = 10000",
    # Nothing that is asked here reads so much that it would be worth starting processes or compiling a plan.
    "jit = off",
    "max_parallel_workers_per_gather = 0",
)
"""What every session is set to."""

BY_INDEX = ("enable_seqscan = off", "enable_hashjoin = off", "enable_mergejoin = off")
"""For statements that touch few rows, each found by an index. PostgreSQL keeps the plan of a prepared statement; one
made while the tables were small would read them whole when they have grown."""


NOTICED = {
    "connect_timeout": "10",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""libpq's settings by which a server that is gone without a word is noticed, as fast as it notices its clients."""

Psycopg = psycopg.Connection[Any]


def connect(
    url: str, *, pool_size: int = 5, by_index: bool = False, idle_seconds: float | None = IDLE_SECONDS
) -> Engine:
    """An engine on that URL; JSON goes through msgspec.

    by_index: whether its statements are those of workers, which touch few rows each.
    idle_seconds: how long a transaction may do nothing; None for ever, for those who only read and lock nothing.
    Connecting raises InputError where a pooler stands before the database that keeps no sessions.
    """
    idle = f"idle_in_transaction_session_timeout = {round((idle_seconds or 0) * 1000)}"
    engine = create_engine(
        url,
        pool_size=pool_size,
        json_serializer=_encode,
        json_deserializer=msgspec.json.decode,
        connect_args={**NOTICED, "application_name": "cotrail"},
    )

    @event.listens_for(engine, "first_connect")
    def check(connection: Psycopg, _: object) -> None:
        with _no_transaction(connection):
            if not _keeps_sessions(connection):
                raise InputError(
                    "the pooler before the database keeps no sessions, and prepared statements, LISTEN and advisory "
                    "locks need them; set its pool_mode to session, or connect to PostgreSQL itself"
                )

    @event.listens_for(engine, "connect")
    def begin(connection: Psycopg, _: object) -> None:
        set_session(connection, (*SESSION, idle, *(BY_INDEX if by_index else ())))

    return engine


def set_session(connection: Psycopg, settings: tuple[str, ...]) -> None:
    """Sets a new session up, in one round trip.

    Not by libpq's `options`, which poolers refuse; and outside of a transaction, whose rollback would undo it.
    """
    with _no_transaction(connection):
        connection.execute("; ".join(f"SET {setting}" for setting in settings).encode())


@contextmanager
def _no_transaction(connection: Psycopg) -> Iterator[None]:
    autocommit, connection.autocommit = connection.autocommit, True
    yield
    connection.autocommit = autocommit


def _keeps_sessions(connection: Psycopg) -> bool:
    """Whether no pooler gives each transaction whichever session is free.

    Seen where another client gets this client's session, or this client another one while the other has its own.
    """
    own = _backend(connection)
    if own == connection.info.backend_pid:  # a pooler makes up the one that it tells its clients
        return True
    try:
        with psycopg.connect(connection.info.dsn, password=connection.info.password or None) as other:
            return own != _backend(other) and own == _backend(connection)
    except ProtocolViolation:  # a pooler of statements doesn't even take transactions
        return False


def _backend(connection: Psycopg) -> int:
    """The server process that carries out the connection's statements."""
    (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
    return int(pid)


OUTAGES = ("08", "40", "53", "55", "57P", "58", "25006", "25P03")
"""SQLSTATEs, or what they begin with, of a database that is away, starting, shutting down, full or in a conflict.

Of class 25 those of a server that is only to be read, and of a process that was frozen in a transaction.
"""

REFUSALS = ("22", "23", "54")
"""What SQLSTATEs begin with of a value that a column can't hold, a constraint forbids, or that is too large."""


def unanswered(error: BaseException | None) -> bool:
    """Whether the database itself is what failed, and the same statements may succeed later."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or unanswered(error.orig)
    if isinstance(error, psycopg.Error) and error.sqlstate:
        return error.sqlstate.startswith(OUTAGES)
    return isinstance(error, OperationalError | InterfaceError | PoolTimeoutError)


def refused(error: BaseException | None) -> bool:
    """Whether the values are what failed: the database takes them at no time, or they can't be written down for it."""
    if isinstance(error, StatementError):
        return refused(error.orig)
    if isinstance(error, psycopg.Error) and error.sqlstate:
        return error.sqlstate.startswith(REFUSALS)
    return isinstance(error, psycopg.DataError | ValueError | OverflowError | RecursionError)


def reason_of(error: BaseException) -> str:
    """What the driver says of an error, in a line and without the statement."""
    cause = getattr(error, "orig", None) or error
    said = str(cause).strip().splitlines()
    return said[0][:MOST_SAID] if said else type(cause).__name__


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


@retry(retry=retry_if_exception_cause_type(DeadlockDetected), stop=stop_after_attempt(TRIES), reraise=True)
def migrate(url: str, revision: str = "head") -> None:
    """Brings the schema up to a revision; where it and live workers wait for one another, it begins again."""
    command.upgrade(alembic_config(url), revision)


def alembic_config(url: str) -> Config:
    """Alembic's configuration for a database, without a file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = url
    return config
