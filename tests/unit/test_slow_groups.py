"""Every slow test is in a group that continuous integration runs now and then."""

import re

import pytest

from tests.slow import FOUND, GROUPS
from tests.unit.commands import ROOT


def test_every_slow_test_is_in_a_group(pytestconfig: pytest.Config) -> None:
    assert {name: group for name, group in pytestconfig.stash[FOUND].items() if group not in GROUPS} == {}


def test_continuous_integration_chooses_among_all_groups() -> None:
    chosen = re.search(r"% (\d+) \+ (\d+)", (ROOT / ".ci" / "run").read_text())
    assert chosen
    count, first = map(int, chosen.groups())
    assert range(first, first + count) == GROUPS
