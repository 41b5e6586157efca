"""pass@k against the choices that it counts, and its lack of bias."""

from itertools import combinations
from math import comb

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.evaluation.metrics.confidence_intervals import confidence_interval
from cotrail.evaluation.metrics.repeated_scores import mean_pass_at_k, pass_at_k
from tests.cases import each_case


@given(answers=st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=9), data=st.data())
def test_it_is_the_share_of_choices_that_hold_a_right_answer(answers: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(min_value=1, max_value=len(answers)))
    choices = list(combinations(answers, k))
    assert pass_at_k(len(answers), round(sum(answers)), k) == pytest.approx(sum(map(any, choices)) / len(choices))


@each_case("k", [1, 2, 5, 10])
def test_it_has_no_bias(k: int) -> None:
    # The expectation over all numbers of right answers of 10, each right with the probability 0.3, exactly.
    expected = sum(comb(10, right) * 0.3**right * 0.7 ** (10 - right) * pass_at_k(10, right, k) for right in range(11))
    assert expected == pytest.approx(1 - 0.7**k)


def test_the_mean_is_over_questions_and_so_is_the_interval() -> None:
    first, second = mean_pass_at_k([[1, 0], [0, 0], [1, 1]])
    assert (first.k, first.mean, first.interval) == (1, 0.5, confidence_interval([0.5, 0, 1]))
    assert (second.k, second.interval) == (2, confidence_interval([1, 0, 1]))
    assert second.mean == pytest.approx(2 / 3)
    assert second.interval is not None
    assert second.interval.method == "clopper-pearson"


def test_there_are_as_many_as_every_question_has_answers() -> None:
    assert [each.k for each in mean_pass_at_k([[1, 0, 1], [0, 1]])] == [1, 2]
    assert mean_pass_at_k([]) == ()


def test_the_interval_of_two_answers_holds_what_it_promises() -> None:
    chance = numpy.random.default_rng(0)
    held = 0
    for _ in range(500):
        rates = chance.beta(1, 1, size=60)
        answers = chance.binomial(1, rates[:, None], size=(60, 4)).astype(float).tolist()
        _, second, *_ = mean_pass_at_k(answers)
        assert second.interval is not None
        # 1 - E[(1 - p)^2] of a uniform p.
        held += second.interval.low <= 2 / 3 <= second.interval.high
    assert held >= 460
