"""Leader election among processes of one kind: the leader is the one whose session holds the advisory lock."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from sqlalchemy import Engine

from cotrail.models.schema import database


class Backoff:
    """Exponential backoff: the pause between attempts doubles with each failure, and a success resets it.

    shortest, longest: the bounds of the pause; pause: the current one. All are seconds.
    """

    def __init__(self, shortest: float, longest: float) -> None:
        self.pause = shortest
        self._shortest, self._longest = shortest, longest
        self._next = 0.0

    @property
    def due(self) -> bool:
        """Return whether the next attempt is due."""
        return time.monotonic() >= self._next

    def attempted(self, *, succeeded: bool) -> None:
        """Note that an attempt was made just now."""
        self.pause = self._shortest if succeeded else min(2 * self.pause, self._longest)
        self._next = time.monotonic() + self.pause


IDLE_SECONDS = 15.0
"""How long a session may be idle: the server ends the session of a frozen process, which releases the lock.

Longer than a process waits for Redis: a leader that waits there isn't frozen.
"""


class Session:
    """A database session that listens for `WAKE`, and may hold the lock.

    leads: whether it held the lock when it last asked; lock: its number; idle: after how many seconds without a sign of
    life the server ends the session.
    """

    def __init__(self, connection: psycopg.Connection[Any], lock: int, idle: float) -> None:
        self._connection = connection
        self._lock = lock
        self._idle = idle
        self.leads = False

    def lead(self) -> bool:
        """Take the lock if it is free, and return whether this session holds it; shows that the process lives."""
        # A session's lock is lost with the session alone, whose end `stay` raises.
        if self.leads:
            self.stay()
        else:
            self.leads = self._connection.execute("SELECT pg_try_advisory_lock(%s)", [self._lock]).fetchone() == (True,)
        return self.leads

    def stay(self) -> None:
        """Show the server that the process lives."""
        self._connection.execute("SELECT")

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Show that the process lives for as long as the block takes, from a thread."""
        over = threading.Event()

        def keep() -> None:
            # A session that the server has ended is found to be so by the next `lead`.
            with suppress(psycopg.Error):
                while not over.wait(self._idle / 5):
                    self.stay()

        thread = threading.Thread(target=keep, name="session", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def resign(self) -> None:
        """Release the lock to the next process that asks for it."""
        self._connection.execute("SELECT pg_advisory_unlock(%s)", [self._lock])
        self.leads = False

    def woken(self, seconds: float) -> set[str]:
        """Return the runs that notifications named; waits up to so many seconds for the first of them."""
        return {each.payload for each in self._connection.notifies(timeout=seconds, stop_after=1)}

    def seconds_up(self) -> float:
        """Return how long the server has been running."""
        up = "SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float"
        (seconds,) = self._connection.execute(up).fetchone() or (0.0,)
        return float(seconds)


@contextmanager
def session(
    engine: Engine, pause: float, lock: int = database.LEADER, prefix: str = database.SESSION_PREFIX
) -> Iterator[Session]:
    """Open a session outside the engine's pool.

    pause: the longest time in seconds between two of its calls in normal operation; lock, prefix: of its kind of
        processes.
    """
    # Not as a URL: libpq reads URLs differently from how SQLAlchemy writes them, and its errors quote them.
    _, named = engine.dialect.create_connect_args(engine.url)
    settings = {**database.CONNECTION_SETTINGS, **named, "application_name": database.session_name(prefix)}
    with psycopg.connect(**settings, autocommit=True) as connection:
        # Several of its own pauses, so that a single late call doesn't cost the lead.
        idle = max(IDLE_SECONDS, 5 * pause)
        database.set_session(connection, (*database.SESSION_SETTINGS, f"idle_session_timeout = {idle * 1000:.0f}"))
        connection.execute(f"LISTEN {database.WAKE}")
        yield Session(connection, lock, idle)
