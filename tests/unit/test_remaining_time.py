"""The remaining time of simulated runs: told late rather than wrong."""

import heapq
from collections.abc import Iterator
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from cotrail.models.queries.progress import Progress, StepCounts
from cotrail.models.schema.states import DesiredState
from cotrail.services.runs.speed import FINISHED, RemainingTime, RunSpeed, steps_to_come
from tests.cases import each_case

POLL = 0.5


class Simulated(Struct, frozen=True, kw_only=True):
    """A run that workers carry out as cotrail's do: questions that have begun go first.

    lengths: of the questions, in sentences; before each is a search, which takes a millisecond.
    """

    lengths: tuple[int, ...]
    workers: int
    seconds: float
    seed: int = 0

    @property
    def longest(self) -> float:
        """The seconds of the longest question, and as many again."""
        return 2 * self.seconds * max(self.lengths)

    def readings(self) -> Iterator[tuple[float, Progress]]:
        """The run's progress at every poll until it ends; the last has no open question."""
        random, size = Random(self.seed), len(self.lengths)
        done, running, milliseconds = [0] * size, set[int](), 0.0
        events: list[tuple[float, int, float]] = []
        now = poll = 0.0
        while True:
            ready = [n for n in range(size) if done[n] < self.lengths[n] and n not in running]
            for n in sorted(ready, key=lambda n: (-done[n], n))[: self.workers - len(running)]:
                seconds = self.seconds * random.uniform(0.8, 1.2)
                heapq.heappush(events, (now + seconds, n, seconds))
                running.add(n)
            if not events:
                break
            while poll < events[0][0]:
                yield poll, self.progress(done, running, milliseconds)
                poll += POLL
            now, n, seconds = heapq.heappop(events)
            milliseconds += 1000 * seconds
            done[n] += 1
            running.remove(n)
        yield now, self.progress(done, running, milliseconds)

    def progress(self, done: list[int], running: set[int], milliseconds: float) -> Progress:
        finished = {n for n, length in enumerate(self.lengths) if done[n] == length}
        begun = {n for n, number in enumerate(done) if n not in finished and (number or n in running)}
        open_, in_finished = sum(done[n] for n in begun), sum(done[n] for n in finished)
        reason = counts("reason", sum(done), milliseconds, open_, in_finished, len(begun), len(running))
        searches = sum(done) + len(running)
        search = counts("retrieve", searches, 1.0 * searches, open_ + len(running), in_finished, 0, 0)
        statuses = {"open": len(done) - len(finished), "finished": len(finished), "failed": 0, "blocked": 0}
        return Progress(
            run="r", desired_state="active", questions={**statuses, "cancelled": 0}, kinds=(reason, search), seconds=0
        )


def counts(
    kind: str, done: int, milliseconds: float, in_open: int, in_finished: int, moving: int, running: int
) -> StepCounts:
    none = dict.fromkeys(("waiting", "ready", "blocked", "failed", "due", "adopted"), 0)
    tokens = dict.fromkeys(("prompt_tokens", "cached_prompt_tokens", "generated_tokens"), 0)
    return StepCounts(
        kind=kind,
        running=running,
        batched=0,
        finished=done,
        under_way=running,
        busy=bool(running),
        done_in_open=in_open,
        done_in_finished=in_finished,
        moving=moving,
        milliseconds=milliseconds,
        **none,
        **tokens,
    )


def told(run: Simulated) -> list[tuple[float, float]]:
    """What was told at the polls, beside the truth."""
    remaining, said = RemainingTime(), []
    for now, progress in run.readings():
        remaining.note(progress, now)
        said.append((now, remaining.seconds(progress)))
    return [(seconds, now - at) for at, seconds in said if seconds is not None]


WORKERS = st.integers(1, 8)
SECONDS = st.sampled_from([0.1, 1.0, 5.0, 41.0])
SEEDS = st.integers(0, 1000)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(1, 8), WORKERS, SECONDS, SEEDS)
def test_of_even_questions_it_is_right_by_a_factor_of_two_or_by_a_question(
    size: int, length: int, workers: int, seconds: float, seed: int
) -> None:
    run = Simulated(lengths=(length,) * size, workers=workers, seconds=seconds, seed=seed)
    for said, true in told(run):
        assert true / 2 <= said <= 2 * true or abs(said - true) <= run.longest


@each_case("workers", [1, 4, 8])
def test_of_uneven_questions_it_is_mostly_right_by_a_factor_of_two_or_by_a_question(workers: int) -> None:
    right = []
    for seed in range(20):
        lengths = tuple(Random(seed).randint(1, 8) for _ in range(40))
        run = Simulated(lengths=lengths, workers=workers, seconds=5.0, seed=seed)
        right += [true / 2 <= said <= 2 * true or abs(said - true) <= run.longest for said, true in told(run)]
    assert sum(right) > 0.9 * len(right) > 0


@given(st.lists(st.integers(1, 4), min_size=1, max_size=20), WORKERS, SEEDS)
def test_nothing_is_told_before_enough_questions_have_finished(lengths: list[int], workers: int, seed: int) -> None:
    run = Simulated(lengths=tuple(lengths), workers=workers, seconds=2.0, seed=seed)
    for _, progress in run.readings():
        moving = progress.kinds[0].moving
        enough = progress.questions["finished"] >= max(FINISHED, moving)
        assert (steps_to_come(progress) is not None) == enough


def test_a_run_of_enough_questions_is_told_the_time() -> None:
    run = Simulated(lengths=(5,) * 30, workers=1, seconds=5.0)
    said = told(run)
    assert said[0][1] > 30 * 5 * 5.0 / 2


def test_a_burst_of_searches_tells_no_time() -> None:
    remaining = RemainingTime()
    open_ = {"open": 95, "finished": 5, "failed": 0, "blocked": 0, "cancelled": 0}
    for second, searches in enumerate((20, 60, 100)):
        kinds = (
            counts("reason", 20, 820_000.0, 0, 20, 1, 1),
            counts("retrieve", searches, 1.0 * searches, 0, 20, 0, 0),
        )
        progress = Progress(run="r", desired_state="active", questions=open_, kinds=kinds, seconds=0)
        remaining.note(progress, float(second))
    assert remaining.seconds(progress) is None


@given(st.floats(10, 100_000), st.integers(10, 190))
def test_a_pause_changes_nothing_of_what_is_told(pause: float, paused_at: int) -> None:
    readings = list(Simulated(lengths=(4,) * 25, workers=2, seconds=2.0, seed=3).readings())
    unpaused, paused = RunSpeed(), RunSpeed()
    for place, (now, progress) in enumerate(readings[:-1]):
        if place == paused_at:
            unpaused.note(replace(progress, desired_state=DesiredState.PAUSED), now)
            paused.note(replace(progress, desired_state=DesiredState.PAUSED), now)
            paused.note(replace(progress, desired_state=DesiredState.PAUSED), now + pause)
        unpaused.note(progress, now)
        paused.note(progress, now + pause * (place >= paused_at))
        assert near(paused.left(progress), unpaused.left(progress))


def near(ours: float | None, theirs: float | None) -> bool:
    return ours is theirs if ours is None or theirs is None else abs(ours - theirs) < 0.01 * theirs + 0.01
