"""How long a run still takes: its remaining work, by its finished questions, over the pace of the workers.

Work is counted in milliseconds of execution, since a search takes a thousandth of the time of a sentence. Nothing is
estimated before it can be known:

- The first questions to finish are the short ones. They are representative once at least LEAST_FINISHED of them have
  finished, and at least as many as are under way.
- The pace is that of the last MEASURED_SECONDS, once the work of LEAST_ENDED typical steps was done in them: a burst of
  searches is less than one sentence. Measuring starts again after a pause or an outage.
"""

from collections import deque
from collections.abc import Mapping

from msgspec import Struct

from cotrail.models.queries.progress import Progress, StepCounts
from cotrail.models.schema.states import QuestionStatus

LEAST_FINISHED = 5
"""The least number of finished questions for an estimate."""

LEAST_ENDED = 8
"""The least number of typical steps for a pace."""

MEASURED_SECONDS = 600.0
"""The sliding window over which the pace is measured."""


class ProgressReading(Struct, frozen=True):
    """The steps that are done at a moment, by their kind; at: seconds of a monotonic clock."""

    at: float
    done: Mapping[str, int]


class RemainingTime:
    """The remaining time of a run, from successive readings of its progress."""

    def __init__(self) -> None:
        self._readings: deque[ProgressReading] = deque()

    def note(self, progress: Progress, now: float) -> None:
        """Takes in progress that was read at `now` (seconds, monotonic), while the run moves."""
        self._readings.append(ProgressReading(now, {counts.kind: counts.done for counts in progress.kinds}))
        while now - self._readings[0].at > MEASURED_SECONDS:
            self._readings.popleft()

    def restart(self) -> None:
        """Starts measuring the pace again, as the run stood still."""
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
        return work / seconds if work and work >= LEAST_ENDED * _typical(progress) else None


def steps_to_come(progress: Progress) -> dict[str, float] | None:
    """The steps that the open questions still take, by their kind; None where the finished ones can't tell yet."""
    finished = progress.questions[QuestionStatus.FINISHED]
    moving = sum(counts.moving for counts in progress.kinds)
    if finished < max(LEAST_FINISHED, moving):
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
    durations = [(counts.done, _milliseconds(counts)) for counts in progress.kinds]
    total = sum(number * each for number, each in durations)
    return sum(number * each**2 for number, each in durations) / total if total else 0.0
