"""Confidence intervals of mean scores."""

from math import inf
from statistics import fmean

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval, confidence_interval
from cotrail.evaluation.metrics.student_t import student_t_quantile
from tests.cases import each_case

shares = st.integers(min_value=0, max_value=100).map(lambda percent: percent / 100)


def interval(scores: list[float], highest: float = 1) -> ConfidenceInterval:
    found = confidence_interval(scores, highest)
    assert found is not None
    return found


def test_the_interval_of_right_and_wrong_answers_is_wilson_s() -> None:
    # 8 of 10, z = 1.96: (0.8 + 0.19208 ± 1.96 * (0.016 + 0.009604)**0.5) / 1.38416 = 0.71674 ± 0.22658.
    found = interval([1.0] * 8 + [0.0] * 2)
    assert (found.method, found.questions) == ("wilson", 10)
    assert [found.low, found.high] == pytest.approx([0.49016, 0.94332], abs=1e-4)


def test_the_interval_of_other_scores_is_that_of_student_s_t() -> None:
    # Mean 0.5, deviation (0.18 / 3)**0.5, t = 3.18245 with three degrees of freedom: 0.5 ± 3.18245 * 0.24495 / 4**0.5.
    found = interval([0.2, 0.5, 0.5, 0.8])
    assert (found.method, found.questions) == ("student-t", 4)
    assert [found.low, found.high] == pytest.approx([0.11023, 0.88977], abs=1e-5)


@given(right=st.integers(min_value=0, max_value=300), wrong=st.integers(min_value=1, max_value=300))
def test_scipy_finds_the_same_interval_of_shares(right: int, wrong: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(right, right + wrong).proportion_ci(0.95, method="wilson")
    found = interval([1.0] * right + [0.0] * wrong)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(scores=st.lists(shares, min_size=2, max_size=40).filter(lambda scores: not {0, 1}.issuperset(scores)))
def test_scipy_finds_the_same_interval_of_scores(scores: list[float]) -> None:
    from scipy.stats import ttest_1samp

    found = confidence_interval(scores)
    if len(set(scores)) == 1:
        assert found is None
        return
    expected = ttest_1samp(scores, 0).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((max(expected.low, 0), min(expected.high, 1)), abs=1e-9)


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
    assert [right.low, wrong.high] == pytest.approx([0.20655, 0.79345], abs=1e-5)


@each_case(("scores", "highest"), [([], 1), ([], inf), ([0.4], 1), ([0.4] * 9, 1), ([4, 4], inf), ([0], inf)])
def test_scores_that_do_not_differ_have_no_interval_unless_they_are_right_or_wrong(
    scores: list[float], highest: float
) -> None:
    assert confidence_interval(scores, highest) is None


def test_where_every_answer_is_wrong_the_interval_still_reaches_beyond_0() -> None:
    assert interval([0.0] * 10).high == pytest.approx(0.27753, abs=1e-5)
    assert interval([1.0] * 10).low == pytest.approx(0.72247, abs=1e-5)


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
    assert all(0.92 <= share / 400 <= 0.98 for share in held)


@given(degrees=st.integers(min_value=1, max_value=1_000_000), probability=st.sampled_from([0.9, 0.95, 0.975, 0.995]))
def test_scipy_finds_the_same_quantile_of_student_s_t(degrees: int, probability: float) -> None:
    from scipy.special import stdtrit

    assert student_t_quantile(degrees, probability) == pytest.approx(stdtrit(degrees, probability), rel=1e-9)
