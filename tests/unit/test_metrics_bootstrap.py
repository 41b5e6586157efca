import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.errors import InputError
from cotrail.evaluation.metrics.bootstrap import (
    Spread,
    mean_and_deviation,
    paired_difference,
    released_mean_and_deviation,
)
from tests.cases import each_case

shares = st.floats(min_value=0, max_value=1, allow_subnormal=False)
pairs = st.lists(st.tuples(shares, shares), min_size=1, max_size=20)


def drawn(seed: int, count: int, mean: float) -> list[float]:
    chance = random.Random(seed)
    return [chance.gauss(mean, 0.3) for _ in range(count)]


def test_the_interval_is_that_of_the_normal_distribution_where_there_are_many_questions() -> None:
    ours, theirs = drawn(1, 900, 0.55), drawn(2, 900, 0.5)
    difference = paired_difference(ours, theirs, seed=3)
    differences = [one - other for one, other in zip(ours, theirs, strict=True)]
    error = statistics.stdev(differences) / 900**0.5
    assert difference.mean == pytest.approx(statistics.fmean(differences))
    assert difference.low == pytest.approx(difference.mean - 1.96 * error, abs=error / 15)
    assert difference.high == pytest.approx(difference.mean + 1.96 * error, abs=error / 15)
    normal = statistics.NormalDist()
    assert difference.p_value == pytest.approx(2 * (1 - normal.cdf(difference.mean / error)), abs=0.01)


def test_pairing_sees_a_difference_that_is_small_beside_the_spread_of_questions() -> None:
    theirs = drawn(1, 200, 0.5)
    clear = paired_difference([score + 0.02 + 0.01 * (place % 2) for place, score in enumerate(theirs)], theirs, seed=1)
    assert clear.low > 0
    assert clear.p_value < 0.001


def test_the_seed_decides() -> None:
    ours, theirs = drawn(1, 50, 0.6), drawn(2, 50, 0.5)
    assert paired_difference(ours, theirs, seed=1) == paired_difference(ours, theirs, seed=1)
    assert paired_difference(ours, theirs, seed=1) != paired_difference(ours, theirs, seed=2)


def test_more_questions_than_are_drawn_at_once_are_no_matter() -> None:
    ours, theirs = drawn(1, 30_000, 0.5), drawn(2, 30_000, 0.5)
    difference = paired_difference(ours, theirs, seed=1, resamples=100)
    assert difference.low < difference.mean < difference.high


def test_a_wider_level_gives_a_wider_interval() -> None:
    ours, theirs = drawn(1, 50, 0.6), drawn(2, 50, 0.5)
    narrow, wide = (paired_difference(ours, theirs, seed=1, level=level) for level in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


@given(scores=pairs)
def test_the_other_way_round_the_difference_is_the_opposite(scores: list[tuple[float, float]]) -> None:
    ours, theirs = zip(*scores, strict=True)
    one, other = paired_difference(ours, theirs, 5, resamples=200), paired_difference(theirs, ours, 5, resamples=200)
    assert (one.mean, one.p_value) == (-other.mean, other.p_value)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert 0 < one.p_value <= 1


@given(scores=st.lists(shares, min_size=1, max_size=20))
def test_a_system_does_not_differ_from_itself(scores: list[float]) -> None:
    difference = paired_difference(scores, scores, 7, resamples=50)
    assert (difference.mean, difference.low, difference.high, difference.p_value) == (0, 0, 0, 1)


@each_case(("ours", "theirs"), [([], []), ([1.0], []), ([1.0], [1.0, 0.0])])
def test_scores_that_are_not_of_the_same_questions_are_refused(ours: list[float], theirs: list[float]) -> None:
    with pytest.raises(InputError, match="can't be compared"):
        paired_difference(ours, theirs, seed=1)


def test_results_of_demonstration_sets_have_a_mean_and_a_sample_deviation() -> None:
    assert mean_and_deviation([1.0, 2.0, 4.5]) == Spread(mean=2.5, deviation=statistics.stdev([1.0, 2.0, 4.5]))
    assert mean_and_deviation([61.25]) == Spread(mean=61.25, deviation=None)


def test_the_released_rule_rounds_before_and_after() -> None:
    values = [61.26, 60.04, 59.94]
    assert released_mean_and_deviation(values) == Spread(mean=60.4, deviation=0.8)
    assert round(mean_and_deviation(values).deviation or 0, 1) == 0.7
    assert released_mean_and_deviation([61.26]) == Spread(mean=61.3, deviation=None)


def test_without_results_there_is_no_mean() -> None:
    with pytest.raises(InputError, match="no results"):
        mean_and_deviation([])
