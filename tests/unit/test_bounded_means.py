"""Bounds of the mean of bounded scores: exact where they can be, by simulated weights elsewhere, and what they miss.

The simulations are of what is hard: few questions, rare scores, lopsided differences, repeats of the same questions.
"""

from collections.abc import Callable

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.evaluation.metrics.bounded_means import (
    beta_quantile,
    beta_share,
    counted,
    mean_bounds,
    mean_p_value,
    root,
    student_t_quantile,
    student_t_tail,
)
from tests.cases import each_case

tenths = st.integers(-10, 10).map(lambda tenth: tenth / 10)
levels = st.sampled_from([0.9, 0.95, 1 - 0.05 / 15])
Chance = numpy.random.Generator
PARTIAL = [0.4, 0.5, 0.67, 0.8, 1.0]


@given(right=st.integers(0, 300), wrong=st.integers(0, 300), level=levels)
def test_of_right_and_wrong_answers_they_are_clopper_and_pearson_s(right: int, wrong: int, level: float) -> None:
    from scipy.stats import binomtest

    if right + wrong:
        expected = binomtest(right, right + wrong).proportion_ci(level, method="exact")
        found = mean_bounds({0.0: wrong, 1.0: right}, 0, 1, level)
        assert found == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(wins=st.integers(0, 200), losses=st.integers(0, 200), ties=st.integers(0, 200))
def test_of_paired_right_and_wrong_answers_the_test_is_mcnemar_s(wins: int, losses: int, ties: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    found = mean_p_value({1.0: wins, -1.0: losses, 0.0: ties}, -1, 1)
    assert found == pytest.approx(expected, rel=1e-9)


def test_one_loss_of_150_may_be_3_7_points() -> None:
    low, high = mean_bounds(counted([0.0] * 149 + [1.0]), -1, 1, 0.95)
    assert (low, high) == pytest.approx((-0.0199, 0.0366), abs=1e-4)


@each_case(
    "scores",
    [
        [0.2, 0.5],
        [0.2, 0.5, 0.5, 0.8],
        [0.0] * 48 + [0.4, 0.67],
        [-1.0] * 3 + [0.0] * 20 + [1.0] * 9,
        [0.3] * 3 + [0.9] * 2,
        [each / 100 for each in range(100)],
    ],
)
@each_case("alpha", [0.025, 0.0025])
def test_what_random_weights_exceed_as_seldom_as_is_said(scores: list[float], alpha: float) -> None:
    """Of 200,000 draws of the weights; the saddlepoint approximation is off by 8 % of the probability at most."""
    low, high = mean_bounds(counted(scores), -1, 1, 1 - 2 * alpha)
    weights = numpy.random.default_rng(7).dirichlet(numpy.ones(len(scores) + 1), size=200_000)
    allowed = 0.08 * alpha + 4 * (alpha / 200_000) ** 0.5
    assert (weights @ numpy.array([*scores, 1.0]) > high).mean() == pytest.approx(alpha, abs=allowed)
    assert (weights @ numpy.array([*scores, -1.0]) < low).mean() == pytest.approx(alpha, abs=allowed)


@given(st.lists(tenths, min_size=1, max_size=40), levels, tenths)
def test_the_test_finds_what_the_interval_leaves_out(differences: list[float], level: float, expected: float) -> None:
    points = counted(differences)
    low, high = mean_bounds(points, -1, 1, level)
    p_value = mean_p_value(points, -1, 1, expected)
    if abs(p_value / (1 - level) - 1) > 0.08:  # but for the approximation
        assert (p_value <= 1 - level) == (not low <= expected <= high)


@given(st.lists(tenths, min_size=1, max_size=40), st.randoms())
def test_they_hold_the_mean_whatever_the_order_and_the_direction(differences: list[float], chance: object) -> None:
    chance.shuffle(mixed := list(differences))  # type: ignore[attr-defined]
    low, high = mean_bounds(counted(differences), -1, 1, 0.95)
    mean = sum(differences) / len(differences)
    assert -1 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1
    assert mean_bounds(counted(mixed), -1, 1, 0.95) == pytest.approx((low, high), abs=1e-9)
    mirrored = mean_bounds(counted([-each for each in differences]), -1, 1, 0.95)
    assert mirrored == pytest.approx((-high, -low), abs=1e-9)
    wider = mean_bounds(counted(differences), -1, 1, 0.99)
    assert wider[0] <= low <= high <= wider[1]


def rare_partial(chance: Chance, questions: int, share: float) -> list[float]:
    scores: list[float] = ((chance.random(questions) < share) * chance.choice(PARTIAL, questions)).tolist()
    return scores


def repeated(chance: Chance, questions: int, repeats: int) -> list[float]:
    """Means over repeats of questions of which most are always answered wrong."""
    rates = chance.beta(0.025, 0.475, questions)
    means: list[float] = (chance.binomial(repeats, rates) / repeats).tolist()
    return means


def one_of(chance: Chance, questions: int, share: float, rare: float, usual: float) -> list[float]:
    drawn: list[float] = numpy.where(chance.random(questions) < share, rare, usual).tolist()
    return drawn


HARD: dict[str, tuple[Callable[[Chance], list[float]], float, float]] = {
    "rare partial scores": (lambda chance: rare_partial(chance, 50, 0.05), 0.05 * sum(PARTIAL) / 5, 0.0),
    "rarer partial scores": (lambda chance: rare_partial(chance, 150, 0.02), 0.02 * sum(PARTIAL) / 5, 0.0),
    "one of fifty": (lambda chance: one_of(chance, 50, 0.02, 1.0, 0.0), 0.02, 0.0),
    "five repeats": (lambda chance: repeated(chance, 50, 5), 0.05, 0.0),
    "lopsided": (lambda chance: one_of(chance, 20, 0.2, -0.8, 0.2), 0.0, -1.0),
    "nine of ten": (lambda chance: one_of(chance, 20, 0.1, -0.9, 0.1), 0.0, -1.0),
    "more lopsided": (lambda chance: one_of(chance, 20, 0.05, -0.95, 0.05), 0.0, -1.0),
    "few losses": (lambda chance: one_of(chance, 150, 0.02, -1.0, 0.0), -0.02, -1.0),
    "even": (lambda chance: (chance.binomial(4, 0.6, 100) / 4).tolist(), 0.6, 0.0),
}


@pytest.mark.parametrize("name", HARD)
def test_the_true_mean_is_outside_in_5_percent_at_most(name: str) -> None:
    draw, true, lowest = HARD[name]
    chance = numpy.random.default_rng(11)
    bounds = [mean_bounds(counted(draw(chance)), lowest, 1, 0.95) for _ in range(600)]
    assert sum(not low <= true <= high for low, high in bounds) <= 0.05 * 600


def test_they_are_not_much_wider_than_student_s_where_that_holds() -> None:
    scores = (numpy.random.default_rng(2).binomial(4, 0.6, 300) / 4).tolist()
    from scipy.stats import ttest_1samp

    expected = ttest_1samp(scores, 0).confidence_interval(0.95)
    low, high = mean_bounds(counted(scores), 0, 1, 0.95)
    assert expected.high - expected.low < high - low < 1.1 * (expected.high - expected.low)


@given(
    a=st.sampled_from([0.5, 1, 2, 10, 100, 3000, 80_000]),
    b=st.sampled_from([0.5, 1, 3, 50, 1000, 50_000]),
    probability=st.sampled_from([1e-6, 0.00083, 0.025, 0.5, 0.975, 0.9999]),
)
def test_scipy_finds_the_same_beta_distribution(a: float, b: float, probability: float) -> None:
    from scipy.stats import beta

    found, expected = beta_quantile(probability, a, b), beta.ppf(probability, a, b)
    assert (found, 1 - found) == pytest.approx((expected, beta.isf(1 - probability, a, b) * -1 + 1), rel=1e-6)
    assert beta_share(expected, a, b) == pytest.approx(probability, rel=1e-6)
    assert (beta_share(0, a, b), beta_share(1, a, b)) == (0, 1)


@given(degrees=st.integers(1, 1_000_000), probability=st.sampled_from([0.9, 0.95, 0.975, 0.995, 0.99999]))
def test_scipy_finds_the_same_student_s_t(degrees: int, probability: float) -> None:
    from scipy.stats import t

    found = student_t_quantile(degrees, probability)
    assert found == pytest.approx(t.ppf(probability, degrees), rel=1e-9)
    assert student_t_tail(found, degrees) == pytest.approx(1 - probability, rel=1e-6)


def test_roots() -> None:
    assert root(lambda x: x**3 - 2, 0.0, 10.0) == pytest.approx(2 ** (1 / 3), rel=1e-12)
    assert root(lambda x: x - 1, 0.0, 1.0) == pytest.approx(1)
    assert root(lambda x: x, 0.0, 1.0) == pytest.approx(0, abs=1e-12)
