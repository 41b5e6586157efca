"""Confidence intervals of mean scores."""

from math import inf
from statistics import fmean

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval
from tests.cases import each_case

shares = st.integers(min_value=0, max_value=100).map(lambda percent: percent / 100)


def interval(scores: list[float], highest: float = 1) -> ConfidenceInterval:
    found = confidence_interval(scores, highest)
    assert found is not None
    return found


def test_the_interval_of_right_and_wrong_answers_is_clopper_and_pearson_s() -> None:
    # 8 of 10: the tables of Clopper and Pearson (1934) have 0.444 and 0.975.
    found = interval([1.0] * 8 + [0.0] * 2)
    assert (found.method, found.questions) == ("clopper-pearson", 10)
    assert [found.low, found.high] == pytest.approx([0.44390, 0.97479], abs=1e-4)


def test_other_scores_have_gaffke_s_interval() -> None:
    """A single score of 0.4 may be the least of what there is: 97.5 % of the way to the best, or to the worst."""
    found = interval([0.4])
    assert (found.method, found.questions) == ("gaffke", 1)
    assert [found.low, found.high] == pytest.approx([0.4 * 0.025, 0.4 + 0.6 * 0.975], abs=1e-9)


@given(scores=st.lists(st.integers(0, 9).map(float), min_size=2, max_size=40))
def test_scipy_finds_the_same_interval_of_numbers_of_things(scores: list[float]) -> None:
    from scipy.stats import ttest_1samp

    found = confidence_interval(scores, inf, -inf)
    if len(set(scores)) == 1:
        assert found is None
        return
    expected = ttest_1samp(scores, 0).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(scores=st.lists(st.one_of(shares, st.sampled_from([0.0, 1.0])), max_size=40))
def test_an_interval_holds_the_mean_and_lies_between_0_and_1(scores: list[float]) -> None:
    found = confidence_interval(scores)
    if found is not None:
        assert 0 <= found.low <= fmean(scores) + 1e-12
        assert fmean(scores) - 1e-12 <= found.high <= 1
        assert confidence_interval(scores) == found


@given(scores=st.lists(shares, min_size=2, max_size=20))
def test_more_questions_that_score_alike_narrow_the_interval(scores: list[float]) -> None:
    found, more = confidence_interval(scores), confidence_interval(scores * 4)
    if found is not None and more is not None:
        assert more.high - more.low < found.high - found.low


def test_a_single_right_or_wrong_answer_says_little_and_never_nothing() -> None:
    right, wrong = interval([1.0]), interval([0.0])
    assert (right.high, wrong.low) == (1, 0)
    assert [right.low, wrong.high] == pytest.approx([0.025, 0.975], abs=1e-9)


@each_case(("scores", "highest"), [([], 1), ([], inf), ([4, 4], inf), ([0], inf), ([1 / 3, 1 - 2 / 3], inf)])
def test_there_is_none_without_scores_and_of_counts_that_do_not_differ(scores: list[float], highest: float) -> None:
    assert confidence_interval(scores, highest) is None


def test_where_every_answer_is_wrong_the_interval_still_reaches_beyond_0() -> None:
    assert interval([0.0] * 10).high == pytest.approx(1 - 0.025**0.1)
    assert interval([1.0] * 10).low == pytest.approx(0.025**0.1)


def test_counts_have_no_best_score() -> None:
    assert interval([0, 1, 1, 9], inf).high > 9
    assert interval([0, 0, 1], inf).method == "student-t"


@each_case("count", [10, 40, 200])
def test_some_95_percent_of_the_intervals_hold_the_true_mean(count: int) -> None:
    chance, held = numpy.random.default_rng(count), [0, 0]
    for _ in range(400):
        right = interval(chance.binomial(1, 0.3, count).tolist())
        graded = interval((chance.binomial(4, 0.6, count) / 4).tolist())
        held[0] += right.low <= 0.3 <= right.high
        held[1] += graded.low <= 0.6 <= graded.high
    assert all(share / 400 >= 0.95 for share in held)
