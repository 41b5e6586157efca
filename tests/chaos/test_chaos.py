"""The short version of the suite, with schedules that are always the same; `make chaos` is the long one."""

import pytest

from tests.chaos.beside import search_of
from tests.chaos.schedule import ROUND, Kind, schedule
from tests.chaos.suite import SYSTEMS, suite

SEED = 6
"""Its first faults have some of the search server's among them."""


def test_a_seed_is_a_schedule() -> None:
    assert schedule(SEED, 40) == schedule(SEED, 40)
    assert schedule(SEED, 40)[:25] == schedule(SEED, 25)
    assert schedule(SEED, 40) != schedule(SEED + 1, 40)


def test_every_round_of_a_schedule_has_every_kind_of_fault() -> None:
    faults = schedule(SEED, 3 * len(ROUND))
    for start in range(0, len(faults), len(ROUND)):
        assert {fault.kind for fault in faults[start : start + len(ROUND)]} == set(Kind)


@pytest.mark.timeout(1800)
def test_a_stack_under_faults_of_every_kind_does_what_it_would_have_done() -> None:
    said: list[str] = []
    faults, search = schedule(SEED, len(ROUND)), search_of(SEED)
    report = suite(faults, said.append, search)
    assert report.wrong == [], "\n".join(said)
    assert any(fault.of_search for fault in faults)
    assert [struck.fault for struck in report.struck] == [fault for fault in faults if search or not fault.of_search]
    assert report.executions >= report.steps > 0
    assert all(report.runs[system] > 1 for system in SYSTEMS), "one each is undisturbed"
