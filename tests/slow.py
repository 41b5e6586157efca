"""Slow tests: those that differ from another one only in what they strike.

`make test` leaves them out, `make chaos` has all of them. Each is in one of seven groups, of about the same length, and
each run of continuous integration has the group that its commit chooses, so that all are run every few submissions.
"""

from typing import Any

import pytest

GROUPS = range(1, 8)

FOUND: pytest.StashKey[dict[str, Any]] = pytest.StashKey()
"""The group of each slow test that was collected, by the test's id; None where the mark names none."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes them down before those that aren't asked for are left out."""
    marks = {item.nodeid: item.get_closest_marker("slow") for item in items}
    config.stash[FOUND] = {name: mark.kwargs.get("group") for name, mark in marks.items() if mark is not None}
