"""The short version of the suite, with schedules that are always the same; `make chaos` is the long one."""

from tests.chaos.schedule import ROUND, Kind, schedule
from tests.chaos.suite import suite

SEED = 5


def test_a_seed_is_a_schedule() -> None:
    assert schedule(SEED, 40) == schedule(SEED, 40)
    assert schedule(SEED, 40)[:25] == schedule(SEED, 25)
    assert schedule(SEED, 40) != schedule(SEED + 1, 40)


def test_every_round_of_a_schedule_has_every_kind_of_fault() -> None:
    faults = schedule(SEED, 3 * len(ROUND))
    for start in range(0, len(faults), len(ROUND)):
        assert {fault.kind for fault in faults[start : start + len(ROUND)]} == set(Kind)


def test_a_stack_under_faults_of_every_kind_does_what_it_would_have_done() -> None:
    said: list[str] = []
    report = suite(schedule(SEED, len(ROUND)), said.append)
    assert report.wrong == [], "\n".join(said)
    assert len(report.struck) == len(ROUND)
    assert report.executions >= report.steps > 0
