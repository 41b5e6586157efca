"""Speed of a watched run: steps a second, the time left, and what it waits for.

Of the time left, work is counted in milliseconds of execution, since a search takes a thousandth of the time of a
sentence. Nothing is estimated before it can be known:

- The first questions to finish are the short ones. They stand for the others once at least FINISHED of them have
  finished, and at least as many as are under way.
- The pace is that of the last MEASURED_SECONDS, once the work of ENDED typical steps was done in them: a burst of
  searches is less than one sentence. It is measured again from the start after a pause or an outage.
"""

from collections import deque
from collections.abc import Callable, Mapping

from msgspec import Struct

from cotrail.common.humanize import count, duration, moment
from cotrail.models.queries.progress import Outage, Progress, StepCounts
from cotrail.models.queries.queues import RunBatches
from cotrail.models.records.budgets import Blockage
from cotrail.models.schema.states import QuestionStatus, RunState
from cotrail.services.runs.progress import PartialScore, RunProgress, run_progress

IDLE_SECONDS = 10.0
"""After this long without a change, waiting steps are reported as taken by no worker."""

WINDOW_SECONDS = 30.0
"""The sliding window over which the rate is measured."""

FINISHED = 5
"""The number of finished questions that an estimate is made from."""

ENDED = 8
"""The number of typical steps that a pace is estimated from."""

MEASURED_SECONDS = 600.0
"""The sliding window over which the pace is measured."""


class Sample(Struct, frozen=True):
    """The steps recorded at a moment; at: seconds of the monotonic clock."""

    at: float
    steps: int


class WatchedRun(Struct, frozen=True, kw_only=True):
    """A run as it was read last, and how fast it is.

    progress: None before the first read is done. answers: whether the last read has ended, and with an answer. rate:
    steps a second within the last half minute. seconds_left, expected_steps: estimates of the remaining time and of the
    whole run's steps; None where they can't be known yet. waits_for: the reason why nothing seems to happen; None where
    something does.
    """

    progress: RunProgress | None
    answers: bool
    rate: float = 0.0
    seconds_left: float | None = None
    expected_steps: float | None = None
    waits_for: str | None = None


class Reading(Struct, frozen=True):
    """The steps that are done at a moment, by their kind; at: seconds of a monotonic clock."""

    at: float
    done: Mapping[str, int]


class RemainingTime:
    """The remaining time of a run, from successive readings of its progress."""

    def __init__(self) -> None:
        self._readings: deque[Reading] = deque()

    def note(self, progress: Progress, now: float) -> None:
        """Takes in progress that was read at `now` (seconds, monotonic), while the run moves."""
        self._readings.append(Reading(now, {counts.kind: counts.done for counts in progress.kinds}))
        while now - self._readings[0].at > MEASURED_SECONDS:
            self._readings.popleft()

    def restart(self) -> None:
        """Measures the pace again, as the run stood still."""
        self._readings.clear()

    def seconds(self, progress: Progress) -> float | None:
        """The remaining seconds; None where they can't be known yet."""
        steps, pace = steps_to_come(progress), self._pace(progress)
        if steps is None or not pace or not progress.open:
            return None
        work = sum(steps[counts.kind] * _milliseconds(counts) for counts in progress.kinds)
        # A question's steps mostly follow one another: the last few questions don't keep all workers busy.
        running, moving = (sum(getattr(each, name) for each in progress.kinds) for name in ("running", "moving"))
        alone: float = work / progress.open / max(1.0, running / max(1, moving))
        return max(work / pace, alone / 1000)

    def _pace(self, progress: Progress) -> float | None:
        """Milliseconds of execution that end in a second; None where too few steps have ended."""
        if not self._readings or not (seconds := self._readings[-1].at - self._readings[0].at):
            return None
        then = self._readings[0].done
        work = sum((counts.done - then.get(counts.kind, 0)) * _milliseconds(counts) for counts in progress.kinds)
        return work / seconds if work and work >= ENDED * _typical(progress) else None


Show = Callable[[WatchedRun], None]
"""Shows a run as it was read last; called from another thread too while a read takes long."""


class RunSpeed:
    """The speed of a watched run, and what it waits for, from successive readings of its progress.

    ask_broker: says why Redis doesn't answer; None where it does. waves: how many batches it waits for at most, one
    after another; None where that isn't known. progress: the last that was read; scores: so far, likewise. lost: the
    line that says that the database or the server doesn't answer, if so. reading_seconds: how long the read that is
    under way has taken, where that is long.
    """

    def __init__(self, ask_broker: Callable[[], str | None] = lambda: None, waves: int | None = None) -> None:
        self.waves = waves
        self.progress: Progress | None = None
        self.scores: tuple[PartialScore, ...] = ()
        self.lost: str | None = None
        self.reading_seconds = 0.0
        self._ask_broker = ask_broker
        self._samples: deque[Sample] = deque()
        self._remaining = RemainingTime()
        self._moved: dict[str, tuple[tuple[int, ...], float]] = {}
        self._now = 0.0

    def note(self, progress: Progress, now: float, scores: tuple[PartialScore, ...] = ()) -> None:
        """Takes in progress, and scores so far, that were read at `now` (seconds, monotonic)."""
        self.progress, self.scores = progress, scores
        was_lost = self.lost is not None
        self._now, self.lost, self.reading_seconds = now, None, 0.0
        self._samples.append(Sample(now, progress.steps))
        while len(self._samples) > 2 and now - self._samples[0].at > WINDOW_SECONDS:
            self._samples.popleft()
        for counts in progress.kinds:
            # Only a change of these tells that a worker took or ended a step of this kind.
            state = (counts.due, counts.done, counts.running, counts.busy)
            if counts.kind not in self._moved or self._moved[counts.kind][0] != state:
                self._moved[counts.kind] = (state, now)
        if was_lost or self._stands_still(progress):
            self._remaining.restart()
        else:
            self._remaining.note(progress, now)

    def watched(self) -> WatchedRun:
        """The run with its speed as it is known now."""
        answers = self.lost is None and not self.reading_seconds
        if self.progress is None:
            return WatchedRun(progress=None, answers=answers, waits_for=self.slowness)
        return WatchedRun(
            progress=run_progress(self.progress, self.scores),
            answers=answers,
            rate=self.rate,
            seconds_left=self.left(self.progress),
            expected_steps=expected_steps(self.progress),
            waits_for=self.waits_for(self.progress),
        )

    @property
    def rate(self) -> float:
        """Steps a second within the window."""
        first, last = self._samples[0], self._samples[-1]
        return (last.steps - first.steps) / (last.at - first.at) if last.at > first.at else 0.0

    def idle(self, counts: StepCounts) -> float:
        """For how many seconds steps of this kind have waited with no worker taking any."""
        waiting = counts.due > 0 and not counts.running and not counts.busy
        return self._now - self._moved[counts.kind][1] if waiting else 0.0

    def left(self, progress: Progress) -> float | None:
        """Estimate of the remaining seconds; None where they can't be known yet."""
        return self._remaining.seconds(progress)

    def waits_for(self, progress: Progress) -> str | None:
        """The reason why nothing seems to happen; None where something does."""
        if self.lost:
            return self.lost
        if self.reading_seconds:
            return self.slowness
        if progress.state == RunState.PAUSED:
            return f"Paused. `cotrail resume {progress.run}` continues it."
        if progress.state == RunState.CANCELLED:
            return f"It is being cancelled; if that was interrupted, `cotrail cancel {progress.run}` completes it."
        if progress.blockage:
            return blockage_line(progress.run, progress.blockage)
        if progress.outages:
            return " ".join(outage_line(outage) for outage in progress.outages)
        for counts in progress.kinds:
            if (seconds := self.idle(counts)) > IDLE_SECONDS:
                return self._idleness(counts, seconds)
        if progress.batches and (line := batches_line(progress.batches, self.waves)):
            return line
        blocked = progress.questions[QuestionStatus.BLOCKED]
        return f"{count(blocked, 'question')} blocked; `cotrail show {progress.run}` says why." if blocked else None

    @property
    def slowness(self) -> str:
        """The line for a read that takes long."""
        return f"The database has been asked for {duration(self.reading_seconds)} and hasn't answered yet."

    def _stands_still(self, progress: Progress) -> bool:
        idle = any(self.idle(counts) > IDLE_SECONDS for counts in progress.kinds)
        away = any(not outage.answers for outage in progress.outages)
        in_batches = progress.batches is not None and bool(progress.batches.under_way)
        held = bool(progress.blockage) or away or in_batches
        return progress.state != RunState.RUNNING or held or idle

    def _idleness(self, counts: StepCounts, seconds: float) -> str:
        waits = f"{count(counts.due, f'{counts.kind} step')} {'waits' if counts.due == 1 else 'wait'}"
        if problem := self._ask_broker():
            return f"Redis doesn't answer ({problem}): {waits}, and workers continue when it is back."
        return (
            f"{waits}, and no worker has taken one for {duration(seconds)}. "
            "`cotrail stack` shows the workers, `cotrail up` starts those that are missing."
        )


def steps_to_come(progress: Progress) -> dict[str, float] | None:
    """The steps that the open questions still take, by their kind; None where the finished ones can't tell yet."""
    finished = progress.questions[QuestionStatus.FINISHED]
    moving = sum(counts.moving for counts in progress.kinds)
    if finished < max(FINISHED, moving):
        return None
    steps = {}
    for counts in progress.kinds:
        each = counts.done_in_finished / finished
        # Questions met on their way have half of the mean before them, or more: long ones are met more often.
        steps[counts.kind] = each * progress.open - min(counts.done_in_open, each * moving / 2)
    return steps


def _milliseconds(counts: StepCounts) -> float:
    """The mean time of a step of this kind."""
    return counts.milliseconds / counts.done if counts.done else 0.0


def _typical(progress: Progress) -> float:
    """The mean time of a step where each counts by its time."""
    done = [(counts.done, _milliseconds(counts)) for counts in progress.kinds]
    total = sum(number * each for number, each in done)
    return sum(number * each**2 for number, each in done) / total if total else 0.0


def expected_steps(progress: Progress) -> float | None:
    """Estimate of the whole run's steps; None where its finished questions can't tell yet."""
    to_come = steps_to_come(progress)
    return None if to_come is None else progress.steps + max(0.0, sum(to_come.values()))


def blockage_line(run: str, blockage: Blockage) -> str:
    """One line on the cause that pauses a run, and what to do."""
    were = "was" if blockage.questions == 1 else "were"
    return (
        f"Paused after {count(blockage.questions, 'question')} {were} blocked by {blockage.type}: "
        f"{blockage.message.rstrip('.')}. Fix it, then `cotrail resume {run}` continues."
    )


def batches_line(batches: RunBatches, most: int | None = None) -> str | None:
    """One line on the batches that a run waits for, `most` one after another; None where it waits for none."""
    if not batches.under_way:
        waiting = f"{count(batches.waiting, 'step')} {'waits' if batches.waiting == 1 else 'wait'}"
        when = "when the account has room again" if batches.full is not None else "once no further requests can come"
        said = f" Lately: {batches.full}." if batches.full else ""
        return f"{waiting} for a batch, which is sent {when}.{said}" if batches.waiting else None
    under_way = batches.under_way
    steps = sum(batch.steps for batch in under_way)
    done, lines = (sum(getattr(batch, name) for batch in under_way) for name in ("done", "lines"))
    sent = min((batch.sent_at for batch in under_way if batch.sent_at), default=None)
    expires = max((batch.expires_at for batch in under_way if batch.expires_at), default=None)
    since = f", sent at {sent.astimezone():%H:%M %Z}" if sent else ""
    end = f", at the latest until {moment(expires)}" if expires else ""
    problem = next((f" Lately: {batch.problem}." for batch in under_way if batch.problem), "")
    at_most = "" if most is None else f" of at most {most}"
    where = "a batch" if len(under_way) == 1 else f"{len(under_way)} batches"
    return (
        f"Wave {batches.waves}{at_most}: {count(steps, 'step')} in {where} at the provider{since} "
        f"({done:,} of {lines:,} requests done{end}).{problem}"
    )


def outage_line(outage: Outage) -> str:
    """One line on an outage: what doesn't answer, since when, how much waits, and when it is tried again."""
    waiting = f"{count(outage.steps, 'step')} {'waits' if outage.steps == 1 else 'wait'}"
    trial = f"in {duration(outage.next_seconds)}" if outage.next_seconds else "due"
    if outage.busy:
        return f"{outage.what.capitalize()} takes no more for now ({outage.message}): {waiting}, the next is {trial}."
    return (
        f"{outage.what.capitalize()} doesn't answer ({outage.message}): "
        f"{waiting} for it since {outage.since.astimezone():%H:%M %Z}, the next trial is {trial}."
    )
