"""Confidence sequences: their promise at every stop by simulation, their arithmetic by the formulas one by one."""

from math import inf, log

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.errors import InputError
from cotrail.evaluation.metrics.confidence_intervals import confidence_sequence
from tests.cases import each_case

SEQUENCES = 400
LONGEST = 300


@each_case("draw", ["coins", "rare", "even"])
def test_it_holds_at_all_stops_together(draw: str) -> None:
    """Of many sequences, each looked at after every score, at most one in twenty ever misses the mean."""
    chance = numpy.random.default_rng(7)
    share = {"coins": 0.5, "rare": 0.03, "even": 0.5}[draw]
    missed = 0
    for _ in range(SEQUENCES):
        drawn = chance.random(LONGEST)
        scores = drawn if draw == "even" else (drawn < share).astype(float)
        # An interval is the intersection of all before it: the last one misses if any did.
        interval = confidence_sequence(scores.tolist())
        assert interval is not None
        missed += not interval.low <= share <= interval.high
    assert missed <= 0.05 * SEQUENCES


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_the_formulas_one_by_one(scores: list[float]) -> None:
    """The vectorized sums are the paper's, term by term."""
    mean, variance, low, high = 0.5, 0.25, 0.0, 1.0
    staked = weighed = surprise = total = squares = 0.0
    for count, score in enumerate(scores, start=1):
        bet = min((2 * log(2 / 0.05) / (variance * count * log(1 + count))) ** 0.5, 0.5)
        staked, weighed = staked + bet, weighed + bet * score
        surprise += 4 * (score - mean) ** 2 * (-log(1 - bet) - bet) / 4
        low = max(low, (weighed - log(2 / 0.05) - surprise) / staked)
        high = min(high, (weighed + log(2 / 0.05) + surprise) / staked)
        total += score
        mean = (0.5 + total) / (count + 1)
        squares += (score - mean) ** 2
        variance = (0.25 + squares) / (count + 1)
    interval = confidence_sequence(scores)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, max(low, high)), abs=1e-9)


def test_other_bounds_are_scaled() -> None:
    """A difference from -1 to 1 has twice the width of the shares that it is made of."""
    shares = [0.0, 1.0, 1.0, 0.5, 1.0] * 20
    one, other = confidence_sequence(shares), confidence_sequence([2 * share - 1 for share in shares], 1.0, -1.0)
    assert one is not None
    assert other is not None
    assert (other.low, other.high) == pytest.approx((2 * one.low - 1, 2 * one.high - 1))


def test_nothing_and_numbers_without_a_bound() -> None:
    """Without scores there is no interval; a count has no best value."""
    assert confidence_sequence([]) is None
    with pytest.raises(InputError, match="no best value"):
        confidence_sequence([1.0], inf)
