"""Means of scores in clusters, against hand computation, statsmodels and simulation."""

from math import inf, sqrt

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.evaluation.metrics.confidence_intervals import confidence_interval
from cotrail.evaluation.metrics.repeated_scores import ClusteredMean, clustered_mean

scores = st.one_of(st.sampled_from([0.0, 1.0]), st.integers(min_value=0, max_value=100).map(lambda n: n / 100))
clusters_of_scores = st.integers(1, 5).flatmap(
    lambda size: st.lists(st.lists(scores, min_size=size, max_size=size), min_size=2, max_size=30)
)


def mean(clusters: list[list[float]], highest: float = inf, lowest: float = -inf) -> ClusteredMean:
    found = clustered_mean(clusters, lambda means: confidence_interval(means, highest, lowest))
    assert found is not None
    return found


def test_a_mean_by_hand() -> None:
    # Mean 0.5; the clusters deviate by 0.5 + 0.5, 0.5 - 0.5 and -0.5 - 0.5: squares 1 + 0 + 1 = 2, times 3 / 2 is 3, of
    # which the root is divided by 6 scores; t with 2 degrees of freedom is 4.30265.
    found = mean([[1, 1], [1, 0], [0, 0]])
    assert found.mean == 0.5
    assert found.standard_error == pytest.approx(sqrt(3) / 6)
    assert found.interval is not None
    assert found.interval.questions == 3
    assert [found.interval.low, found.interval.high] == pytest.approx([0.5 - 1.242068, 0.5 + 1.242068], abs=1e-5)


@given(clusters=clusters_of_scores)
def test_statsmodels_finds_the_same_error_and_interval(clusters: list[list[float]]) -> None:
    """Of as many answers to each question, the cluster-robust regression of the scores on nothing."""
    from statsmodels.api import OLS

    flat = numpy.concatenate([numpy.array(cluster) for cluster in clusters])
    groups = numpy.repeat(numpy.arange(len(clusters)), [len(cluster) for cluster in clusters])
    fitted = OLS(flat, numpy.ones(len(flat))).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    found = mean(clusters)
    assert found.mean == pytest.approx(fitted.params[0])
    assert found.standard_error == pytest.approx(fitted.bse[0], rel=1e-6, abs=1e-8)
    if found.interval:  # that of Student's t, as nothing is said of a best score
        assert [found.interval.low, found.interval.high] == pytest.approx(fitted.conf_int()[0], rel=1e-6, abs=1e-9)


@given(answers=st.lists(scores, min_size=2, max_size=30))
def test_of_one_answer_a_question_the_error_is_that_of_student_s_t(answers: list[float]) -> None:
    found = mean([[answer] for answer in answers])
    expected = confidence_interval(answers, inf, -inf)
    assert (found.interval is None) == (expected is None)
    if found.interval and expected:
        assert [found.interval.low, found.interval.high] == pytest.approx([expected.low, expected.high])


@given(answers=st.lists(scores, min_size=2, max_size=30), times=st.integers(min_value=2, max_value=9))
def test_the_same_answers_again_teach_nothing(answers: list[float], times: int) -> None:
    once, often = mean([[each] for each in answers], 1, 0), mean([[each] * times for each in answers], 1, 0)
    assert often.standard_error == pytest.approx(once.standard_error)
    assert (often.interval is None) == (once.interval is None)
    if often.interval and once.interval:
        assert [often.interval.low, often.interval.high] == pytest.approx([once.interval.low, once.interval.high])


def test_a_question_counts_once_however_often_it_is_answered() -> None:
    assert mean([[1, 1, 1, 1], [0]], 1, 0).mean == 0.5


def test_there_is_no_error_of_a_single_question_and_none_where_questions_do_not_differ() -> None:
    assert clustered_mean([]) is None
    assert clustered_mean([[], []]) is None
    alone = mean([[0.2, 0.8]], 1, 0)
    assert (alone.mean, alone.standard_error) == (0.5, None)
    assert alone.interval == confidence_interval([0.5])
    assert mean([[0.2, 0.8], [0.8, 0.2]], 1, 0).standard_error == 0


def test_right_answers_alone_have_the_exact_interval_over_questions() -> None:
    found = mean([[1, 1], [1, 1], [1, 1]], 1, 0)
    assert found.interval == confidence_interval([1, 1, 1])
    assert found.interval is not None
    assert found.interval.method == "clopper-pearson"


def test_the_interval_holds_what_it_promises_and_one_that_takes_answers_for_independent_does_not() -> None:
    chance = numpy.random.default_rng(0)
    held = naive = 0
    for _ in range(1000):
        # Questions differ in how likely an answer is right: on average one half.
        rates = chance.beta(0.7, 0.7, size=40)
        drawn = chance.binomial(1, rates[:, None], size=(40, 8)).astype(float).tolist()
        found, flat = mean(drawn, 1, 0).interval, confidence_interval([score for row in drawn for score in row])
        assert found is not None
        assert flat is not None
        held += found.low <= 0.5 <= found.high
        naive += flat.low <= 0.5 <= flat.high
    assert held >= 950
    assert naive < 750
