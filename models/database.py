"""Connections to PostgreSQL, and its schema."""

from pathlib import Path
from typing import Any

import msgspec
from alembic import command
from alembic.config import Config
from psycopg import InterfaceError, OperationalError
from psycopg.errors import DeadlockDetected, IdleInTransactionSessionTimeout, ReadOnlySqlTransaction
from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from tenacity import retry, retry_if_exception_cause_type, stop_after_attempt

IDLE_SECONDS = 10
"""How long a transaction may do nothing: a process that is frozen within one would hold up all that it has locked."""

TRIES = 10
"""How often a migration is begun that live workers get in the way of."""

MIGRATIONS = Path(__file__).parents[1] / "migrations"


SMALL = ("jit=off", "max_parallel_workers_per_gather=0")
"""Nothing that is asked here reads so much that it would be worth starting processes or compiling a plan."""

BY_INDEX = ("enable_seqscan=off", "enable_hashjoin=off", "enable_mergejoin=off")
"""For statements that touch few rows, each found by an index. PostgreSQL keeps the plan of a prepared statement; one
made while the tables were small would read them whole when they have grown."""


NOTICED = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
"""libpq's settings by which a server that is gone without a word is noticed within half a minute."""


def connect(
    url: str, *, pool_size: int = 5, by_index: bool = False, idle_seconds: float | None = IDLE_SECONDS
) -> Engine:
    """An engine on that URL; JSON goes through msgspec.

    by_index: whether its statements are those of workers, which touch few rows each.
    idle_seconds: how long a transaction may do nothing; None for ever, for those who only read and lock nothing.
    """
    idle = f"idle_in_transaction_session_timeout={round((idle_seconds or 0) * 1000)}"
    settings = (idle, *SMALL, *(BY_INDEX if by_index else ()))
    return create_engine(
        url,
        pool_size=pool_size,
        json_serializer=_encode,
        json_deserializer=msgspec.json.decode,
        connect_args={
            **NOTICED,
            "application_name": "cotrail",
            "options": " ".join(f"-c {setting}" for setting in settings),
        },
    )


def unanswered(error: BaseException | None) -> bool:
    """Whether the database itself is what failed, and the same may do later.

    It can't be reached, is starting or shutting down, is out of disk, memory or connections, or only to be read.
    """
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or unanswered(error.orig)
    passing = OperationalError | InterfaceError | ReadOnlySqlTransaction | IdleInTransactionSessionTimeout
    return isinstance(error, passing | PoolTimeoutError)


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
