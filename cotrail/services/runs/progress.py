"""How far a run is, and why questions of it have no answer, as the command line and an API answer it."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from statistics import fmean
from threading import Lock
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.humanize import count, percent, percent_range, within_sentence
from cotrail.core.actions.registry import has_prompt
from cotrail.core.budgets import Budgets, Consumed
from cotrail.core.history import UNTIL
from cotrail.core.money import Spent
from cotrail.core.questions import Question
from cotrail.errors import InputError, UnknownNameError, UnknownVersionError
from cotrail.evaluation.metrics.answer_metrics import METRICS, main_metrics
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.question_scores import scorer
from cotrail.evaluation.metrics.stop_rules import rule_of, sequence_interval
from cotrail.models.queries.outcomes import Prefix
from cotrail.models.queries.progress import Outage, Progress, read_causes, read_progress
from cotrail.models.queries.progress import StopCause as StopCause
from cotrail.models.queries.queues import RunBatches
from cotrail.models.queries.runs import RunRecord
from cotrail.models.records.budgets import Blockage
from cotrail.models.schema.states import QuestionStatus
from cotrail.models.schema.states import RunState as RunState
from cotrail.services.runs.labels import find_run
from cotrail.systems.registry import find_system, recorded_system


class PartialScore(Struct, frozen=True, kw_only=True):
    """The mean of a metric over the first questions of a run, all of which have ended.

    interval: the 95 % confidence sequence, which holds at every look, where the questions are in a random order.
    """

    metric: str
    title: str
    mean: float
    interval: ConfidenceInterval


def partial_line(scores: tuple[PartialScore, ...]) -> str:
    """e.g. `answer F1 so far 52.1 % (46.0 to 58.3) over the first 212 questions`; empty where nothing is known yet."""
    parts = [
        f"{within_sentence(each.title)} {'so far ' if place == 0 else ''}{percent(each.mean)} "
        f"({percent_range(each.interval.low, each.interval.high)})"
        for place, each in enumerate(scores)
    ]
    return f"{', '.join(parts)} over the first {count(scores[0].interval.questions, 'question')}" if parts else ""


class RunTotals(Struct, frozen=True, kw_only=True):
    """What a run has done so far; questions: all of them; steps: those that are done.

    ends: the number of questions by what ended them (`cotrail.core.history`), the most frequent first.
    spent: on language models; None where none of them is hosted.
    """

    run: str
    questions: int
    finished: int
    failed: int
    steps: int
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    ends: Mapping[str, int] = {}
    spent: Spent | None = None


def run_totals(progress: Progress) -> dict[str, Any]:
    """The fields of `RunTotals`."""
    tokens = ("prompt_tokens", "cached_prompt_tokens", "generated_tokens")
    return {
        "run": progress.run,
        "questions": progress.total,
        "finished": progress.questions[QuestionStatus.FINISHED],
        "failed": progress.questions[QuestionStatus.FAILED],
        "steps": progress.steps,
        "ends": progress.ends,
        "spent": progress.spent,
        **{name: progress.tokens(name) for name in tokens},
    }


class RunProgress(RunTotals, frozen=True, kw_only=True):
    """How far a run is: see `RunTotals`.

    open, blocked, cancelled: the questions of that status.
    seconds: from the start of its first step to the end of the last one, counting executions that were lost.
    outages: the servers that are away and hold the run's steps back. blockage: the cause that keeps further questions
    from being admitted until a person has fixed it. batches: those of a run that is asked in batches.
    budgets: of its questions and of all together; consumed: what its steps took, where the run has a budget. scores: so
    far, of a watched run.
    """

    state: RunState
    open: int
    blocked: int
    cancelled: int
    seconds: float
    outages: tuple[Outage, ...]
    blockage: Blockage | None
    ends: Mapping[str, int]
    spent: Spent | None
    budgets: Budgets
    consumed: Consumed
    batches: RunBatches | None = None
    scores: tuple[PartialScore, ...] = ()

    @property
    def statuses(self) -> dict[str, int]:
        """The number of questions by status, without those that no question has."""
        names = ("open", "finished", "failed", "blocked", "cancelled")
        return {name: number for name in names if (number := getattr(self, name))}

    @property
    def done(self) -> int:
        """The number of questions that are finished or failed; a cancelled one isn't done."""
        return self.finished + self.failed

    @property
    def complete(self) -> bool:
        """Whether every question has an answer, apart from those that the run's rule kept from being asked."""
        unasked = sum(number for end, number in self.ends.items() if end.startswith(UNTIL))
        return self.finished + unasked == self.questions


def run_progress(progress: Progress, scores: tuple[PartialScore, ...] = ()) -> RunProgress:
    """The answer to a run's progress as the store has it."""
    same = ("state", "seconds", "outages", "blockage", "budgets", "consumed", "batches")
    fields = progress.questions | run_totals(progress) | {name: getattr(progress, name) for name in same}
    return RunProgress(**fields, scores=scores)


def read_reasons(connection: Connection, run_id: str) -> tuple[StopCause, ...]:
    """Why questions of the run failed or are blocked, the most frequent cause first."""
    return tuple(read_causes(connection, run_id))


def most_waves(system: str, version: int, settings: Mapping[str, Any]) -> int | None:
    """How many waves a run has at most, by the limits of its system; None where it has none.

    Raises UnknownNameError, UnknownVersionError.
    """
    spec = find_system(system, version)
    bounds = spec.step_bounds(Question(id="", text=""), msgspec.convert(settings, spec.settings))
    if bounds is None:
        return None
    prompted = (each for each in bounds if has_prompt(each.kind))
    return sum(each.times if each.in_turn is None else each.in_turn for each in prompted)


def waves_in_words(system: str, version: int, settings: Mapping[str, Any]) -> str:
    """What a run in batches takes."""
    most = most_waves(system, version, settings)
    waves = "batches one after another" if most is None else f"at most {count(most, 'wave')} of batches"
    return f"It is asked in {waves}: each mostly takes less than an hour, and 24 hours at worst."


# Readings of a run that is watched: its progress, and its scores so far, taken up where the last one ended.

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
        """Read those of this run again the next time: questions that have ended may be asked again then."""
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
