"""Watching a run while workers carry it out: its progress is read again and again, also across outages."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from statistics import fmean
from threading import Event, Thread

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from cotrail.configuration.settings import settings
from cotrail.errors import InputError, UnknownNameError, UnknownVersionError
from cotrail.evaluation.metrics.registry import METRICS, main_metrics
from cotrail.evaluation.metrics.scorers import scorer
from cotrail.evaluation.metrics.stop_rules import rule_of, sequence_interval
from cotrail.models.queries.prefixes import Prefix
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.runs import RunRecord, read_run
from cotrail.models.schema.database import reason_of, unanswered
from cotrail.services.runs.partial_scores import PartialScore
from cotrail.services.runs.run_progress import RunProgress, run_progress
from cotrail.services.runs.run_speed import RunSpeed, Show
from cotrail.services.runs.waves import most_waves
from cotrail.systems.registry import recorded_system

POLL_SECONDS = 0.5
LONGEST_PAUSE = 5.0
"""The longest pause between two reads, however slow they are."""

SLOW_SECONDS = 2.0
"""A read that takes longer is shown as slow, and again after each such interval."""

LOST_SECONDS = 1.0
"""Pause before a database that doesn't answer is asked again."""

SHOWN = 3
"""The number of metrics that are shown."""

LOOK_SECONDS = 0.2
"""How long scoring the questions that have ended since the last look may take, not counting the last chunk."""


class PartialScores:
    """The main metrics of a run that it has, and before them that of its rule, read again and again."""

    def __init__(self, record: RunRecord) -> None:
        rule = rule_of(record.provenance)
        ruling = [METRICS[rule.metric]] if rule else []
        bounded = (metric for metric in main_metrics() if not metric.is_count)
        self._metrics = {metric.name: metric for metric in (*ruling, *bounded)}
        self._prefix = Prefix(record.id, scorer(record, recorded_system, self._metrics), self._metrics)
        self._scores: tuple[PartialScore, ...] = ()

    def look(self, connection: Connection) -> tuple[PartialScore, ...]:
        """Take in the questions that have ended since the last look; returns the scores so far."""
        seen = self._prefix.questions
        self._prefix.advance(connection, LOOK_SECONDS)
        if self._prefix.questions > seen:
            self._scores = tuple(islice(self._means(), SHOWN))
        return self._scores

    def _means(self) -> Iterator[PartialScore]:
        for name, metric in self._metrics.items():
            known = [score for score in self._prefix.scores[name] if score is not None]
            if interval := sequence_interval(metric, known):
                yield PartialScore(metric=name, title=metric.title, mean=fmean(known), interval=interval)


def watch(engine: Engine, run: str, show: Show) -> RunProgress:
    """Shows a run after each read, until no question is open or one cause blocks it; returns the last that was read.

    run: its id. Raises SQLAlchemyError where the first read fails; later the database is waited for.
    """
    with engine.connect() as connection:
        record = read_run(connection, run)
    speed, partial = RunSpeed(broker_problem, _waves(record)), _partial_scores(record)

    def show_slow(seconds: float) -> None:
        speed.reading_seconds = seconds
        show(speed.watched())

    while True:
        started = time.monotonic()
        try:
            with _meanwhile(show_slow, SLOW_SECONDS), engine.connect() as connection:
                progress = read_progress(connection, run)
                scores = partial.look(connection) if partial else ()
            speed.note(progress, started, scores)
        except SQLAlchemyError as error:
            if speed.progress is None or not unanswered(error):
                raise
            speed.lost, speed.reading_seconds = reason_of(error), 0.0
        show(speed.watched())
        if not progress.open or progress.stopped:
            return run_progress(progress, scores)
        time.sleep(LOST_SECONDS if speed.lost else pause_after(time.monotonic() - started))


def _waves(record: RunRecord) -> int | None:
    """How many waves of batches the run has at most; None where it has none, or this process can't know."""
    with suppress(UnknownNameError, UnknownVersionError):
        return most_waves(record.system, record.system_version, record.settings) if record.batched else None
    return None


def _partial_scores(record: RunRecord) -> PartialScores | None:
    """The run's scores so far; None where this process lacks its dataset or the metric of its rule."""
    with suppress(UnknownNameError, InputError):
        return PartialScores(record)
    return None


def pause_after(seconds: float) -> float:
    """The pause after a read of that duration: backpressure, as large runs are slow to read, up to a bound."""
    return min(max(POLL_SECONDS, 10 * seconds), LONGEST_PAUSE)


def broker_problem() -> str | None:
    """Why Redis doesn't answer; None where it does."""
    from cotrail.tasks import routing  # slow: it imports Celery

    problem = routing.broker_problem(settings().broker)
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
