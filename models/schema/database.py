"""Connections to PostgreSQL, and what its refusals mean."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from psycopg import InterfaceError, OperationalError
from psycopg.errors import ProtocolViolation
from sqlalchemy import Connection, Engine, QueuePool, create_engine, event, func, select
from sqlalchemy.exc import DBAPIError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from cotrail.configuration.variables import LIBPQ, warn_of_taken_out
from cotrail.errors import CotrailError, InputError, UnavailableError

IDLE_SECONDS = 10
"""How long a transaction may be idle: a process that is frozen within one would keep its locks."""

MOST_SAID = 500
"""The largest number of characters shown of a driver's message."""

SESSION_SETTINGS = tuple(
    line for line in Path(__file__).with_name("session.conf").read_text("utf-8").splitlines() if line and line[0] != "#"
)
"""The settings of every session."""

LATER_SETTINGS = {140_000: "idle_session_timeout = 0", 170_000: "transaction_timeout = 0"}
"""Settings of all sessions on servers from these versions on."""

DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)
"""A step counts because it is on disk; a server that waits for a standby too still does."""

BY_INDEX = ("enable_seqscan = off", "enable_hashjoin = off", "enable_mergejoin = off")
"""Settings for statements that touch few rows, each found by an index. PostgreSQL keeps the plan of a prepared
statement, and one made while the tables were small would still read them whole once they have grown."""


CONNECTION_SETTINGS = {
    "connect_timeout": "10",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""libpq's settings to notice a vanished server as fast as it notices vanished clients."""

Psycopg = psycopg.Connection[Any]


class Pool(QueuePool):
    """A pool that closes connections which come back after it was disposed of, too.

    Threads may hold some then. SQLAlchemy keeps them in a pool that nobody uses any more, and the thread that frees its
    memory finds them open.
    """

    _disposed = False

    def dispose(self) -> None:
        """Close all connections, now or when they come back."""
        self._disposed = True
        super().dispose()

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        super()._do_return_conn(record)
        if self._disposed:  # asked afterwards: whichever of two threads comes last closes the connection
            super().dispose()


def connect(url: str, *, pool_size: int = 5, by_index: bool = False, idles: bool = False) -> Engine:
    """Return an engine on that URL; JSON goes through msgspec.

    by_index: set for workers, whose statements touch few rows each.
    idles: set where connections may lie unused for long, so that each is tried before it is used again.
    Connecting raises InputError where a connection pooler before the database doesn't keep sessions, or the database
    can't hold every text.
    """
    warn_of_taken_out(LIBPQ)
    idle = f"idle_in_transaction_session_timeout = {round(IDLE_SECONDS * 1000)}"
    engine = create_engine(
        url,
        poolclass=Pool,
        pool_size=pool_size,
        json_serializer=lambda value: msgspec.json.encode(value).decode(),
        pool_pre_ping=idles,
        json_deserializer=msgspec.json.decode,
        connect_args={**CONNECTION_SETTINGS, "application_name": "cotrail"},
    )

    @event.listens_for(engine, "first_connect")
    def check(connection: Psycopg, _: object) -> None:
        check_encoding(connection)
        with _no_transaction(connection):
            check_guards(connection)
            if not _keeps_sessions(connection):
                raise InputError(
                    "the pooler before the database keeps no sessions, and prepared statements, LISTEN and advisory "
                    "locks need them; set its pool_mode to session, or connect to PostgreSQL itself"
                )

    @event.listens_for(engine, "connect")
    def begin(connection: Psycopg, _: object) -> None:
        set_session(connection, (*SESSION_SETTINGS, idle, *(BY_INDEX if by_index else ())))

    return engine


def check_encoding(connection: Psycopg) -> None:
    """Raises InputError where the database can't hold every text."""
    encoding, name = connection.info.parameter_status("server_encoding"), connection.info.dbname
    if encoding not in (None, "UTF8"):
        connection.close()  # no pool has it yet
        raise InputError(
            f"the encoding of the database {name} is {encoding}, which can't hold every text; make "
            "one with `createdb --encoding UTF8 --template template0`, and name it in COTRAIL_DATABASE_URL"
        )


def check_guards(connection: Psycopg) -> None:
    """Raises InputError where the database's triggers, which guard what is recorded, are off in its sessions."""
    (role,) = connection.execute("SHOW session_replication_role").fetchone() or ("origin",)
    if role != "origin":
        raise InputError(
            f"sessions of the database {connection.info.dbname} begin with session_replication_role = {role}, under "
            "which nothing guards the record; take that default away: ALTER DATABASE or ALTER ROLE ... RESET "
            "session_replication_role"
        )


def set_session(connection: Psycopg, settings: tuple[str, ...]) -> None:
    """Apply settings to a new session, in one round trip.

    Not by libpq's `options`, which poolers refuse; and outside a transaction, whose rollback would undo it.
    """
    version = connection.info.server_version
    later = (setting for since, setting in LATER_SETTINGS.items() if version >= since)
    with _no_transaction(connection):
        connection.execute("; ".join([*(f"SET {each}" for each in (*later, *settings)), DURABLE]).encode())


@contextmanager
def _no_transaction(connection: Psycopg) -> Iterator[None]:
    """A new connection in autocommit; it is closed where the block fails, as no pool has it yet."""
    try:
        autocommit, connection.autocommit = connection.autocommit, True
        yield
        connection.autocommit = autocommit
    except BaseException:
        connection.close()
        raise


def _keeps_sessions(connection: Psycopg) -> bool:
    """Return whether the connection keeps its session, which a pooler in transaction mode doesn't.

    A second client shows it: through such a pooler it gets this client's session, or takes it so that this client gets
    another one.
    """
    own = _backend(connection)
    if own == connection.info.backend_pid:  # no pooler: one tells its clients an invented process id
        return True
    try:
        # `dsn` leaves the password out.
        with psycopg.connect(connection.info.dsn, password=connection.info.password or None) as other:
            return own != _backend(other) and own == _backend(connection)
    except ProtocolViolation:  # a pooler in statement mode refuses transactions
        return False


def _backend(connection: Psycopg) -> int:
    """Return the id of the server process that executes the connection's statements."""
    (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
    return int(pid)


# Classes: 08 connection, 40 rollback, 53 resources, 55 state (a lock), 57 operator, 58 system.
OUTAGES = ("08", "40", "53", "55", "57", "58", "25006", "25P03")
"""SQLSTATEs, or their beginnings, of a database that is away, starting, shutting down, full or in a conflict, or where
somebody cancelled the statement.

Of class 25 only two: a read-only server, and a transaction ended because its process was idle for too long.
"""

REFUSALS = ("22", "23", "54")
"""Beginnings of SQLSTATEs of a value that a column can't hold, a constraint forbids, or that is too large."""


def unanswered(error: BaseException | None) -> bool:
    """Return whether the database itself failed, so that the same statements may succeed later."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or unanswered(error.orig)
    if isinstance(error, psycopg.Error) and error.sqlstate:
        return error.sqlstate.startswith(OUTAGES)
    return isinstance(error, OperationalError | InterfaceError | PoolTimeoutError)


def refused(error: BaseException | None) -> bool:
    """Return whether the values are at fault: the database never takes them, or they can't be encoded for it."""
    if isinstance(error, StatementError):
        return refused(error.orig)
    if isinstance(error, psycopg.Error) and error.sqlstate:
        return error.sqlstate.startswith(REFUSALS)
    return isinstance(error, psycopg.DataError | ValueError | OverflowError | RecursionError)


def reason_of(error: BaseException) -> str:
    """Return the driver's message of an error, in one line and without the statement."""
    cause = getattr(error, "orig", None) or error
    lines = str(cause).strip().splitlines()
    return lines[0][:MOST_SAID] if lines else type(cause).__name__


# What to do about a database that refuses or doesn't answer, in the words of the person who set its address.

NOT_LET_IN = (
    *(
        "password authentication failed",
        "no password supplied",
        "no pg_hba.conf entry",
        "authentication failed for user",
    ),
    *("is not permitted to log in", "permission denied for database"),
)
"""Parts of what a server says to a role that it doesn't let in."""


@contextmanager
def explained(*, local: bool) -> Iterator[None]:
    """Turns what SQLAlchemy raises in the block into an error that says what to do.

    local: whether the database is the local stack's own, and not one that COTRAIL_DATABASE_URL names.
    Raises UnavailableError where the database can't be used, InputError where it can't hold a value.
    """
    try:
        yield
    except StatementError as error:
        if explanation := _explanation(error, local=local):
            raise explanation from error
        raise


def unreachable(error: Exception, *, local: bool) -> str:
    """What to do about a database that can't be connected to, with its reason."""
    reason = reason_of(error)
    if "starting up" in reason:
        return f"the database is starting; try again in a few seconds ({reason})"
    if local:
        return f"the local stack's database doesn't answer; start it with `cotrail up` ({reason})"
    named = "the database that COTRAIL_DATABASE_URL names"
    if any(part in reason for part in NOT_LET_IN) or ("role" in reason and "does not exist" in reason):
        return f"{named} doesn't let this user in; correct the user or the password there ({reason})"
    if "does not exist" in reason:
        return f"{named} isn't on that server; make it (`createdb`), or correct the name ({reason})"
    return f"{named} doesn't answer; check the URL and the server ({reason})"


def _explanation(error: StatementError, *, local: bool) -> CotrailError | None:
    if unanswered(error):
        return UnavailableError(unreachable(error, local=local))
    if refused(error):
        return InputError(f"the database can't hold a value of the input: {reason_of(error)}; correct it")
    state = error.orig.sqlstate if isinstance(error.orig, psycopg.Error) else None
    makes = "`cotrail up`" if local else "`cotrail migrate`"
    match state:
        case "42P01":
            return UnavailableError(f"the database has no tables yet; {makes} makes them")
        case "42703":
            return UnavailableError(
                f"the database's tables aren't those of this cotrail ({reason_of(error)}); {makes} updates them"
            )
        case "42501":
            return UnavailableError(
                f"the database's user may not do this ({reason_of(error)}); make it the owner of the database and its "
                "tables, or grant it the right"
            )
    return None


# How maintenance processes show in the database, and are woken: by the name of their session, a lock and NOTIFY.

WAKE = "cotrail_wake"
"""The channel on which maintenance processes listen."""

# This number and the two below are four letters each, `cotr`, `batc` and `summ`, which no other program is likely to
# lock.
LEADER = 0x636F7472
"""The advisory lock of the active one."""

SESSION_PREFIX = "cotrail maintenance "
"""The beginning of the name of a maintenance process's session."""

BATCHES_LEADER, BATCHES_PREFIX = 0x62617463, "cotrail batches "
"""The same of the generation workers, of which one sends and collects batches."""

SUMMARIZER = 0x73756D6D
"""The advisory lock of the process that summarizes questions that have ended."""

LONGEST_NAME = 63
"""Bytes of a session's name that PostgreSQL keeps."""


def session_name(prefix: str = SESSION_PREFIX) -> str:
    """Return the name of this process's session, with its id and its host, which is cut where it is too long."""
    name = f"{prefix}{os.getpid()} {socket.gethostname()}"
    return name.encode()[:LONGEST_NAME].decode(errors="ignore")


def notify(connection: Connection, run_id: str) -> None:
    """Tells the maintenance process, once this transaction is committed, that a run has work for it."""
    connection.execute(select(func.pg_notify(WAKE, run_id)))
