"""The power goes in the middle of a run of 1,000 questions, and comes back."""

from tests.chaos.power_cut import power_cut


def test_a_long_run_goes_on_where_the_power_went() -> None:
    cut = power_cut(1000)
    assert cut.wrong == []
    assert cut.steps_before > 0
    assert cut.steps_after > 0
