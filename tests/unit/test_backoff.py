"""Exponential backoff between attempts."""

from unittest.mock import patch

from cotrail.workers.leading import Backoff


def test_the_pause_doubles_with_each_failure_up_to_a_bound_and_a_success_resets_it() -> None:
    backoff = Backoff(0.1, 1.0)
    pauses = []
    for _ in range(5):
        backoff.attempted(succeeded=False)
        pauses.append(backoff.pause)
    assert pauses == [0.2, 0.4, 0.8, 1.0, 1.0]
    backoff.attempted(succeeded=True)
    assert backoff.pause == 0.1


def test_it_is_due_at_once_and_then_after_its_pause() -> None:
    with patch("cotrail.workers.leading.time.monotonic") as now:
        now.return_value = 100.0
        backoff = Backoff(1.0, 8.0)
        assert backoff.due
        backoff.attempted(succeeded=False)
        assert not backoff.due
        now.return_value = 101.5
        assert not backoff.due
        now.return_value = 102.0
        assert backoff.due
