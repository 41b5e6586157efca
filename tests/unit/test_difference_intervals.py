"""Intervals of mean differences: against scipy, in any order and direction, without any, and by simulation."""

import random
from math import inf

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.evaluation.comparison.intervals import anytime_interval, difference_interval
from cotrail.evaluation.metrics.confidence_sequences import confidence_sequence
from tests.cases import each_case

tenths = st.integers(-10, 10).map(lambda tenth: tenth / 10)


@given(st.lists(tenths, min_size=2, max_size=40).filter(lambda values: len(set(values)) > 1))
def test_it_is_scipys_interval_of_students_t(differences: list[float]) -> None:
    from scipy import stats

    low, high = stats.ttest_1samp(differences, 0).confidence_interval()
    found = difference_interval(differences, inf)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)
    bounded = difference_interval(differences, 1.0)
    assert bounded is not None
    assert (bounded.low, bounded.high) == pytest.approx((max(low, -1), min(high, 1)), abs=1e-6)


@given(st.lists(tenths, min_size=2, max_size=40), st.randoms())
def test_neither_the_order_nor_the_direction_matters(differences: list[float], chance: random.Random) -> None:
    found = difference_interval(differences, 1.0)
    mixed = difference_interval(chance.sample(differences, len(differences)), 1.0)
    mirrored = difference_interval([-each for each in differences], 1.0)
    for other in (mixed, mirrored and mirrored.mirrored()):
        assert (other is None) == (found is None)
        if found and other:
            assert (other.low, other.high) == pytest.approx((found.low, found.high), abs=1e-12)


@each_case("differences", [[], [0.5], [0.5] * 7, [0.0] * 7])
def test_equal_differences_have_none(differences: list[float]) -> None:
    assert difference_interval(differences, 1.0) is None


@each_case("share", [0.05, 0.2])
def test_equal_systems_that_seldom_differ_are_within_it(share: float) -> None:
    """Of 1,000 pairs of equal systems on 60 questions, the interval leaves 0 out in about 5 % at most."""
    chance = numpy.random.default_rng(5)
    missed = 0
    for _ in range(1000):
        drawn = chance.random(60)
        differences = (drawn < share).astype(float) - (drawn > 1 - share)
        interval = difference_interval(differences.tolist(), 1.0)
        missed += interval is not None and interval.side != 0
    assert missed <= 60


def test_the_interval_at_every_stop_is_that_of_a_confidence_sequence() -> None:
    differences = [1.0, 0.0, -1.0, 1.0] * 30
    found, theirs = anytime_interval(differences, span=1.0), confidence_sequence(differences, 1.0, -1.0)
    assert found is not None
    assert theirs is not None
    assert (found.low, found.high, found.level) == (theirs.low, theirs.high, 0.95)
    assert anytime_interval([], span=1.0) is None
