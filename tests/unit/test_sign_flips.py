"""The paired permutation test: by enumeration, against scipy and McNemar's test, in any order and direction."""

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotrail.evaluation.comparison.sign_flips import RESAMPLES, sign_flip_test
from cotrail.evaluation.metrics.mcnemar import mcnemar
from tests.cases import each_case

tenths = st.integers(-10, 10).map(lambda tenth: tenth / 10)
few = st.lists(tenths, min_size=1, max_size=8)
many = st.lists(tenths, min_size=30, max_size=60)


def enumerated(differences: list[float]) -> float:
    """The share of all ways to set the signs whose sum is at least as far from 0."""
    tenths_ = [round(10 * each) for each in differences]
    sums = [
        abs(sum(sign * each for sign, each in zip(signs, tenths_, strict=True)))
        for signs in product((1, -1), repeat=len(tenths_))
    ]
    return sum(each >= abs(sum(tenths_)) for each in sums) / len(sums)


@settings(max_examples=40)
@given(few)
def test_few_differences_are_tested_by_all_ways_to_set_their_signs(differences: list[float]) -> None:
    tested = sign_flip_test(differences, seed=1)
    assert tested.method == "exact"
    assert tested.p_value == pytest.approx(enumerated(differences))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=300))
def test_scores_of_0_and_1_give_mcnemars_exact_test(pairs: list[tuple[bool, bool]]) -> None:
    ours, theirs = zip(*pairs, strict=True)
    tested = sign_flip_test([float(one) - float(other) for one, other in pairs], seed=1)
    assert tested.method == "exact"
    assert tested.p_value == pytest.approx(mcnemar(ours, theirs).p_value)


@each_case("shift", [0.0, 0.03, 0.1])
def test_many_differences_are_tested_as_scipy_tests_them(shift: float) -> None:
    from scipy import stats

    chance = random.Random(3)
    differences = [round(chance.uniform(-0.5, 0.5) + shift, 2) for _ in range(200)]
    theirs = stats.permutation_test(
        (differences,),
        lambda values, axis: values.mean(axis=axis),
        permutation_type="samples",
        n_resamples=RESAMPLES,
        rng=5,
    )
    tested = sign_flip_test(differences, seed=1)
    assert tested.method == "sampled"
    assert tested.p_value == pytest.approx(theirs.pvalue, abs=0.015)


@settings(max_examples=40)
@given(st.one_of(few, many), st.randoms())
def test_neither_the_order_nor_the_direction_matters(differences: list[float], chance: random.Random) -> None:
    tested = sign_flip_test(differences, seed=1)
    shuffled = chance.sample(differences, len(differences))
    assert sign_flip_test(shuffled, seed=1) == tested
    assert sign_flip_test([-each for each in differences], seed=1) == tested
    assert 0 < tested.p_value <= 1


@given(many, st.integers(1, 50))
def test_equal_questions_decide_nothing(differences: list[float], equal: int) -> None:
    assert sign_flip_test([*differences, *[0.0] * equal], seed=1) == sign_flip_test(differences, seed=1)


def test_a_sampled_p_value_counts_what_was_seen() -> None:
    tested = sign_flip_test([0.5, 0.25] * 40, seed=1)
    assert tested.p_value == 1 / (1 + RESAMPLES)


def test_rounding_makes_no_difference_of_its_own() -> None:
    """0.1 + 0.2 - 0.3 isn't 0 in binary: neither a win nor another size than those it equals."""
    assert sign_flip_test([0.1 + 0.2 - 0.3] * 50, seed=1).p_value == 1
    assert sign_flip_test([0.3, 0.1 + 0.2, -0.3], seed=1) == sign_flip_test([0.3, 0.3, -0.3], seed=1)
