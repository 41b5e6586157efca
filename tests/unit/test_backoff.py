"""How often something is looked for that may not be there."""

from unittest.mock import patch

from workers.backoff import Backoff


def test_what_is_looked_for_in_vain_is_looked_for_ever_more_seldom() -> None:
    pace = Backoff(0.1, 1.0)
    pauses = []
    for _ in range(5):
        pace.looked(found=False)
        pauses.append(pace.pause)
    assert pauses == [0.2, 0.4, 0.8, 1.0, 1.0]
    pace.looked(found=True)
    assert pace.pause == 0.1


def test_it_is_due_at_once_and_then_after_its_pause() -> None:
    with patch("workers.backoff.time.monotonic") as now:
        now.return_value = 100.0
        pace = Backoff(1.0, 8.0)
        assert pace.due
        pace.looked(found=False)
        assert not pace.due
        now.return_value = 101.5
        assert not pace.due
        now.return_value = 102.0
        assert pace.due
