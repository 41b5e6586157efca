"""Which of several maintenance processes works: the one whose session holds the advisory lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Engine

from models.records.waking import WAKE
from models.schema.database import NOTICED, SESSION, set_session

LEADER = 0x636F7472
"""The advisory lock."""

IDLE_SECONDS = 15.0
"""How long a session may ask for nothing: the server ends that of a process that is frozen, and with it the lock.

Longer than a process waits for Redis, which is no reason to lose the lock so.
"""


class Session:
    """A session that listens, and may hold the lock.

    leads: whether it held the lock when it last asked.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.leads = False

    def lead(self) -> bool:
        """Whether it holds the lock, which it takes where it is free. Tells the server that the process lives."""
        if self.leads:
            self.stay()
        else:
            self.leads = self._connection.execute("SELECT pg_try_advisory_lock(%s)", [LEADER]).fetchone() == (True,)
        return self.leads

    def stay(self) -> None:
        """Tells the server that the process lives."""
        self._connection.execute("SELECT")

    def resign(self) -> None:
        """Leaves the lock to whoever asks for it next."""
        self._connection.execute("SELECT pg_advisory_unlock(%s)", [LEADER])
        self.leads = False

    def woken(self, seconds: float) -> set[str]:
        """The runs that somebody said something has changed of; waits so long for the first of them."""
        return {each.payload for each in self._connection.notifies(timeout=seconds, stop_after=1)}

    def seconds_up(self) -> float:
        """How long the server has been running."""
        up = "SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float"
        row = self._connection.execute(up).fetchone()
        assert row is not None  # noqa: S101 - a SELECT of a value
        return float(row[0])


@contextmanager
def session(engine: Engine, pause: float) -> Iterator[Session]:
    """A new one beside an engine's own.

    pause: how many seconds pass between two of its calls at most, while all is well.
    """
    # Not as a URL: libpq reads one otherwise than SQLAlchemy writes it, and quotes what it doesn't understand.
    _, named = engine.dialect.create_connect_args(engine.url)
    with psycopg.connect(**{**NOTICED, **named}, autocommit=True) as connection:
        idle = max(IDLE_SECONDS, 5 * pause)
        set_session(connection, (*SESSION, f"idle_session_timeout = {idle * 1000:.0f}"))
        connection.execute(f"LISTEN {WAKE}")
        yield Session(connection)
