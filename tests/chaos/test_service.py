"""The short versions of the trials of the service over HTTP."""

import pytest

from tests.chaos import contract, service

pytestmark = pytest.mark.timeout(1800)  # each kill has the service start anew


def test_what_is_submitted_while_the_service_is_killed_is_there_once() -> None:
    found = service.trial(2 * service.A_KILL)
    assert found.wrong == []
    assert sum(found.kills.values()) >= 1


def test_the_service_answers_as_it_is_described_while_it_is_killed() -> None:
    found = contract.trial(60, under_kills=True)
    assert found.tally.wrong_first == {}
    assert (found.lost_runs, found.doubled_runs) == ([], [])
    assert len(found.tally.statuses) == 6
