"""Readings of a run that is watched: its progress, and its scores so far, taken up where the last one ended."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from statistics import fmean
from threading import Lock

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.errors import InputError, UnknownNameError, UnknownVersionError
from cotrail.evaluation.metrics.registry import METRICS, main_metrics
from cotrail.evaluation.metrics.scorers import scorer
from cotrail.evaluation.metrics.stop_rules import rule_of, sequence_interval
from cotrail.models.queries.prefixes import Prefix
from cotrail.models.queries.progress import Progress, read_progress
from cotrail.models.queries.runs import RunRecord
from cotrail.models.schema.states import RunState
from cotrail.services.runs.named_runs import find_run
from cotrail.services.runs.partial_scores import PartialScore
from cotrail.services.runs.waves import most_waves
from cotrail.systems.registry import recorded_system

SHOWN = 3
"""The number of metrics that are shown."""

LOOK_SECONDS = 0.2
"""How long scoring the questions that have ended since the last look may take, not counting the last chunk."""

REMEMBERED = 100
"""The number of runs whose scores so far are kept for the next reading."""


class RunReading(Struct, frozen=True, kw_only=True):
    """A run as it was read: what displays of its progress are made from.

    state: of the run, which follows from its progress; scores: so far.
    waves: how many batches it waits for at most, one after another; None where it has none, or that isn't known.
    """

    state: RunState
    progress: Progress
    scores: tuple[PartialScore, ...] = ()
    waves: int | None = None


class PartialScores:
    """The main metrics of a run that it has, and before them that of its rule, read again and again."""

    def __init__(self, record: RunRecord) -> None:
        rule = rule_of(record.provenance)
        ruling = [METRICS[rule.metric]] if rule else []
        bounded = (metric for metric in main_metrics() if not metric.is_count)
        self._metrics = {metric.name: metric for metric in (*ruling, *bounded)}
        self._prefix = Prefix(record.id, scorer(record, recorded_system, self._metrics), self._metrics)
        self._scores: tuple[PartialScore, ...] = ()
        self._looking = Lock()

    def look(self, connection: Connection) -> tuple[PartialScore, ...]:
        """Take in the questions that have ended since the last look; returns the scores so far."""
        with self._looking:
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


class _Remembered:
    """The scores so far of the runs that were read last, for all who watch them."""

    def __init__(self) -> None:
        self._scores: OrderedDict[object, PartialScores] = OrderedDict()
        self._lock = Lock()

    def of(self, connection: Connection, record: RunRecord) -> PartialScores:
        """Those of a run, new ones where it wasn't read before; raises UnknownNameError, InputError."""
        key = self._key(connection, record)
        with self._lock:
            if key not in self._scores:
                self._scores[key] = PartialScores(record)
            self._scores.move_to_end(key)
            while len(self._scores) > REMEMBERED:
                self._scores.popitem(last=False)
            return self._scores[key]

    def forget(self, connection: Connection, record: RunRecord) -> None:
        """Read those of this run anew the next time: questions that have ended may be asked again then."""
        with self._lock:
            self._scores.pop(self._key(connection, record), None)

    @staticmethod
    def _key(connection: Connection, record: RunRecord) -> object:
        return connection.engine.url, record.id, record.created_at


_remembered = _Remembered()


def read_again(connection: Connection, run: str) -> RunReading:
    """How far a run is, with its scores so far; run: its id, the beginning of it, its name, or `latest`."""
    record = find_run(connection, run)
    progress, scores = read_progress(connection, record.id), scores_so_far(connection, record)
    if ended(progress):
        _remembered.forget(connection, record)
    return RunReading(state=progress.state, progress=progress, scores=scores, waves=_waves(record))


def ended(progress: Progress) -> bool:
    """Whether the run doesn't go on by itself: no question is open, or one cause blocks it."""
    return not progress.open or progress.stopped


def scores_so_far(connection: Connection, record: RunRecord) -> tuple[PartialScore, ...]:
    """The run's scores so far; none where this process lacks its dataset or the metric of its rule."""
    try:
        scores = _remembered.of(connection, record)
    except (UnknownNameError, InputError):
        return ()
    return scores.look(connection)


def _waves(record: RunRecord) -> int | None:
    """How many waves of batches the run has at most; None where it has none, or this process can't know."""
    with suppress(UnknownNameError, UnknownVersionError):
        return most_waves(record.system, record.system_version, record.settings) if record.batched else None
    return None
