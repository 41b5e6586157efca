"""Watching a run while workers carry it out: its progress is read again and again, also across outages."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cotrail.configuration.settings import settings
from cotrail.errors import TooManyRequestsError, UnavailableError
from cotrail.models.queries.progress import StopCause
from cotrail.models.queries.runs import resolve_run
from cotrail.models.schema.database import reason_of, unanswered
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.progress import RunProgress, RunReading, ended, read_again, read_reasons, run_progress
from cotrail.services.runs.speed import RunSpeed, Show
from cotrail.services.store import reading as reading_store

POLL_SECONDS = 0.5
LONGEST_PAUSE = 5.0
"""The longest pause between two reads, however slow they are."""

SLOW_SECONDS = 2.0
"""A read that takes longer is shown as slow, and again after each such interval."""

LOST_SECONDS = 1.0
"""Pause before a database or a server that doesn't answer is asked again."""

ReadAgain = Callable[[str], RunReading]
"""Reads a run, here or on a server."""


def watch(run: str, read: ReadAgain, show: Show, ask_broker: Callable[[], str | None] = lambda: None) -> RunProgress:
    """Shows a run after each read, until no question is open or one cause blocks it; returns the last that was read.

    run: its id, or another name of it. ask_broker: says why Redis doesn't answer; None where it does.
    Raises what the first read raises; later the database, and the server, are waited for.
    """
    speed = RunSpeed(ask_broker)

    def show_slow(seconds: float) -> None:
        speed.reading_seconds = seconds
        show(speed.watched())

    while True:
        started, pause = time.monotonic(), LOST_SECONDS
        try:
            with _meanwhile(show_slow, SLOW_SECONDS):
                reading = read(run)
        except (UnavailableError, TooManyRequestsError) as error:
            if speed.progress is None or not _may_come_back(error):
                raise
            speed.lost, speed.reading_seconds = _lost_line(error), 0.0
            pause = max(pause, error.seconds or 0.0)
        else:
            run, speed.waves = reading.progress.run, reading.waves
            speed.note(reading.progress, started, reading.scores)
        show(speed.watched())
        if ended(reading.progress):
            return run_progress(reading.progress, reading.scores)
        time.sleep(pause if speed.lost else pause_after(time.monotonic() - started))


def _may_come_back(error: UnavailableError | TooManyRequestsError) -> bool:
    """Whether the same may succeed later; not where the database answers, but can't be used as it is."""
    return not isinstance(error.__cause__, SQLAlchemyError) or unanswered(error.__cause__)


def _lost_line(error: UnavailableError | TooManyRequestsError) -> str:
    if isinstance(error.__cause__, SQLAlchemyError):
        return f"The database doesn't answer ({reason_of(error.__cause__)}): the workers and this command wait for it."
    message = str(error)
    return f"{message[:1].upper()}{message[1:]}. This command waits for it."


def pause_after(seconds: float) -> float:
    """The pause after a read of that duration: backpressure, as large runs are slow to read, up to a bound."""
    return min(max(POLL_SECONDS, 10 * seconds), LONGEST_PAUSE)


def broker_problem() -> str | None:
    """Why Redis takes no messages, or loses them; None where it doesn't."""
    from cotrail.tasks import broker_health  # slow: it imports Celery

    problem = broker_health.broker_problem(settings().broker, settings().broker_prefix)
    return None if problem is None else settings().secrets.hidden(problem)


@contextmanager
def _meanwhile(tell: Callable[[float], None], seconds: float) -> Iterator[None]:
    """Calls `tell` from a thread every `seconds`, with the seconds that the block has taken, until the block ends."""
    over, began = Event(), time.monotonic()

    def run() -> None:
        try:
            while not over.wait(seconds):
                tell(time.monotonic() - began)
        except OSError:
            return  # the output is closed; the next print of the main thread raises for it

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Broker(Struct, frozen=True, kw_only=True):
    """Redis, which tells workers of steps; problem: why it doesn't answer, None where it does."""

    problem: str | None


@operation("progress.reading", "GET", "/runs/{run}/progress", Scope.READ)
def show_reading(run: str) -> RunReading:
    """Read how far a run is: its questions and steps, what holds it back, and its scores so far."""
    with reading_store() as connection:
        return read_again(connection, run)


@operation("progress.reasons", "GET", "/runs/{run}/reasons", Scope.READ)
def list_reasons(run: str) -> tuple[StopCause, ...]:
    """Say why questions of a run failed or are blocked, the most frequent cause first."""
    with reading_store() as connection:
        return read_reasons(connection, resolve_run(connection, run))


@operation("progress.broker", "GET", "/broker", Scope.READ)
def show_broker() -> Broker:
    """Say whether Redis answers, which tells workers of steps."""
    return Broker(problem=broker_problem())
