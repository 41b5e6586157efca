"""The power goes in the middle of a run, and comes back; `make chaos` does it with 1,000 questions."""

import pytest

from tests.chaos.power_cut import power_cut


@pytest.mark.timeout(1800)
def test_a_long_run_goes_on_where_the_power_went() -> None:
    cut = power_cut(300)
    assert cut.wrong == []
    assert cut.steps_before > 0
    assert cut.steps_up + cut.steps_after > 0
