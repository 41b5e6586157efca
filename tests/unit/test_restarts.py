"""When a service that died is started again."""

from hypothesis import given
from hypothesis import strategies as st

from cotrail.workers.stack.status import (
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    STABLE_SECONDS,
    Restarts,
    died,
    failed,
    started,
)

BRIEFLY, LONG = 1.0, STABLE_SECONDS


def pauses(uptimes: list[float]) -> list[float]:
    """The pauses of a service that dies again and again after these uptimes."""
    found, now, restarts = [], 0.0, Restarts()
    for uptime in uptimes:
        now += uptime
        restarts = died(restarts, now, uptime=uptime, reason=None)
        found.append(restarts.pause)
        now += restarts.pause
        restarts = started(restarts)
    return found


def test_pauses_double_up_to_the_longest_while_a_service_keeps_dying() -> None:
    assert pauses([LONG] + [BRIEFLY] * 8) == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_service_that_ran_well_is_started_again_after_the_shortest_pause() -> None:
    assert pauses([BRIEFLY] * 5 + [LONG, BRIEFLY]) == [1, 2, 4, 8, 16, 1, 2]


def test_a_start_that_fails_counts_as_a_death_but_not_as_a_restart() -> None:
    restarts = died(Restarts(), 100.0, uptime=LONG, reason="SIGKILL")
    restarts = failed(restarts, 101.0, "the disk is full")
    assert (restarts.count, restarts.pause, restarts.reason) == (0, 2 * SHORTEST_SECONDS, "the disk is full")
    assert started(restarts).count == 1


@given(st.lists(st.floats(0, 2 * STABLE_SECONDS), min_size=1))
def test_every_pause_is_within_its_bounds(uptimes: list[float]) -> None:
    assert all(SHORTEST_SECONDS <= pause <= LONGEST_SECONDS for pause in pauses(uptimes))


@given(st.floats(0, 1e6), st.floats(0, 2 * LONGEST_SECONDS))
def test_a_dead_service_is_due_once_its_pause_is_over(now: float, later: float) -> None:
    restarts = died(Restarts(), now, uptime=BRIEFLY, reason=None)
    then = now + later
    assert restarts.is_due(then) == (restarts.seconds_left(then) == 0)
    assert not restarts.found_running().is_due(then)
    assert not started(restarts).is_due(then)
