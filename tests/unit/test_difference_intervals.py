"""Intervals of mean differences: against scipy, in any order and direction, and where none is defined."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cotrail.evaluation.comparison.intervals import (
    MOST_RESAMPLED,
    RESAMPLES,
    anytime_interval,
    difference_interval,
)
from cotrail.evaluation.metrics.confidence_sequences import confidence_sequence

tenths = st.integers(-10, 10).map(lambda tenth: tenth / 10)


def drawn(count: int, shift: float = 0.1) -> list[float]:
    chance = random.Random(3)
    return [round(chance.uniform(-1, 1) + shift, 2) for _ in range(count)]


def test_it_is_scipys_bootstrap_of_the_ordered_differences() -> None:
    ordered = sorted(drawn(80))
    low, high = stats.bootstrap(
        (ordered,), lambda values, axis: values.mean(axis=axis), n_resamples=RESAMPLES, rng=9
    ).confidence_interval
    # Drawn for the one direction or the other: both of the same law.
    found = difference_interval(drawn(80), seed=9)
    assert found is not None
    assert found.method == "bca"
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.01)


def test_many_questions_have_students_interval_which_the_bootstrap_agrees_with() -> None:
    ours, several = drawn(MOST_RESAMPLED + 1), drawn(MOST_RESAMPLED)
    low, high = stats.ttest_1samp(ours, 0).confidence_interval()
    found, resampled = difference_interval(ours, seed=1), difference_interval(several, seed=1)
    assert found is not None
    assert resampled is not None
    assert (found.method, resampled.method) == ("student-t", "bca")
    assert (found.low, found.high) == pytest.approx((low, high))
    width = found.high - found.low
    assert resampled.low == pytest.approx(stats.ttest_1samp(several, 0).confidence_interval().low, abs=width / 30)


@settings(max_examples=30)
@given(st.lists(tenths, min_size=2, max_size=40), st.randoms())
def test_neither_the_order_nor_the_direction_matters(differences: list[float], chance: random.Random) -> None:
    found = difference_interval(differences, seed=1)
    assert difference_interval(chance.sample(differences, len(differences)), seed=1) == found
    mirrored = difference_interval([-each for each in differences], seed=1)
    assert mirrored == (found.mirrored() if found else None)
    if found:
        assert min(differences) - 1e-9 <= found.low <= found.high <= max(differences) + 1e-9


@pytest.mark.parametrize("differences", [[], [0.5], [0.5] * 7, [0.0] * 7])
def test_equal_differences_have_none(differences: list[float]) -> None:
    assert difference_interval(differences, seed=1) is None


def test_the_interval_at_every_stop_is_that_of_a_confidence_sequence() -> None:
    differences = [1.0, 0.0, -1.0, 1.0] * 30
    found, theirs = anytime_interval(differences, span=1.0), confidence_sequence(differences, 1.0, -1.0)
    assert found is not None
    assert theirs is not None
    assert (found.low, found.high, found.level) == (theirs.low, theirs.high, 0.95)
    assert anytime_interval([], span=1.0) is None
