"""Families of comparisons: the promise that equal systems are seldom called different, by simulation; and the parts."""

import random
from itertools import combinations

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotrail.evaluation.comparison import sign_flips
from cotrail.evaluation.comparison.differences import (
    ALPHA,
    anytime_differences,
    fixed_differences,
    holm,
)
from cotrail.evaluation.comparison.intervals import anytime_interval
from cotrail.evaluation.comparison.outcomes import outcomes
from cotrail.evaluation.comparison.pareto import pareto_front
from cotrail.evaluation.comparison.power import questions_needed
from cotrail.evaluation.comparison.sign_flips import sign_flip_test
from tests.cases import each_case

SIMULATED = 300
QUESTIONS = 120


def equal_systems(chance: numpy.random.Generator, systems: int, *, partial: bool) -> list[list[float]]:
    """The paired differences of all pairs of systems that are equally good on questions of different difficulty."""
    easy = chance.random(QUESTIONS)
    right = (chance.random((systems, QUESTIONS)) < easy).astype(float)
    scores = right * chance.choice([0.4, 0.5, 0.67, 0.8, 1.0], size=right.shape) if partial else right
    return [(one - other).tolist() for one, other in combinations(scores, 2)]


@each_case("partial", [False, True])
@each_case("systems", [2, 3])
def test_of_comparisons_of_equal_systems_few_are_called_different(
    systems: int,
    partial: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A family counts where any of its pairs is called different; more than this has a probability below 0.001.

    The promise holds for any number of draws, and fewer are sooner made.
    """
    monkeypatch.setattr(sign_flips, "RESAMPLES", 999)
    chance = numpy.random.default_rng(systems)
    called = 0
    for _ in range(SIMULATED):
        family = equal_systems(chance, systems, partial=partial)
        p_values = [sign_flip_test(each, seed=0).p_value for each in family]
        # No correction makes a p-value smaller.
        called += min(p_values) <= ALPHA and min(holm(p_values)) <= ALPHA
    assert called <= ALPHA * SIMULATED + 3.1 * (SIMULATED * ALPHA * (1 - ALPHA)) ** 0.5


@each_case("partial", [False, True])
@each_case("systems", [2, 3])
def test_at_every_stop_few_are_called_different(systems: int, partial: bool) -> None:  # noqa: FBT001
    """A family counts where any of its pairs is called different after any number of questions."""
    chance = numpy.random.default_rng(systems)
    called = 0
    for _ in range(SIMULATED):
        family = equal_systems(chance, systems, partial=partial)
        level = 1 - ALPHA / len(family)
        intervals = (
            anytime_interval(each[:stop], 1.0, level) for each in family for stop in range(1, QUESTIONS + 1, 7)
        )
        called += any(interval.side for interval in intervals if interval)
    assert called <= ALPHA * SIMULATED


def test_looking_again_and_again_with_a_test_of_a_fixed_number_would_break_the_promise() -> None:
    chance = numpy.random.default_rng(5)
    called = 0
    for _ in range(100):
        [differences] = equal_systems(chance, 2, partial=False)
        stops = (differences[:stop] for stop in range(10, QUESTIONS + 1, 5))
        called += any(sign_flip_test(stop, seed=0).p_value <= ALPHA for stop in stops)
    assert called > 2 * ALPHA * 100


def test_a_difference_that_there_is_is_shown_by_both() -> None:
    chance = random.Random(1)
    differences = [chance.choice((1.0, 1.0, 0.0, 0.0, -1.0)) for _ in range(600)]
    [fixed], [anytime] = fixed_differences([differences], 1.0), anytime_differences([differences], 1.0)
    assert (fixed.verdict, anytime.verdict) == ("better", "better")
    assert (anytime.test, anytime.corrected) == (None, None)
    assert fixed.interval is not None
    assert anytime.interval is not None
    assert anytime.interval.high - anytime.interval.low > fixed.interval.high - fixed.interval.low


@settings(max_examples=10)
@given(st.lists(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.3, 1.0]), max_size=25), max_size=3))
def test_the_other_direction_is_the_mirror_image(family: list[list[float]]) -> None:
    names = {"better": "worse", "worse": "better", "undecided": "undecided"}
    mirrored = fixed_differences([[-each for each in differences] for differences in family], 1.0)
    for ours, theirs in zip(fixed_differences(family, 1.0), mirrored, strict=True):
        assert theirs.verdict == names[ours.verdict]
        assert theirs.mean == (None if ours.mean is None else -ours.mean)
        assert (theirs.test, theirs.corrected, theirs.needed) == (ours.test, ours.corrected, ours.needed)
        assert theirs.interval == (ours.interval.mirrored() if ours.interval else None)


@settings(max_examples=20)
@given(st.lists(st.floats(0.0001, 1), min_size=1, max_size=12))
def test_holms_correction_is_statsmodels(p_values: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())


def test_holms_correction_by_hand() -> None:
    """The smallest is multiplied by the number of tests, the next by one less, and none is below the one before it."""
    assert holm([0.03, 0.01, 0.04, 0.5]) == pytest.approx([0.09, 0.04, 0.09, 0.5])
    assert holm([]) == []


def test_only_the_corrected_p_value_decides() -> None:
    """One of ten equal pairs has a p-value of 0.03, which is nothing among ten."""
    one, none = [1.0] * 12 + [-1.0] * 3, [1.0, -1.0] * 8
    [alone] = fixed_differences([one], 1.0)
    among = fixed_differences([one, *[none] * 9], 1.0)[0]
    assert alone.test == among.test
    assert alone.test is not None
    assert alone.test.p_value == pytest.approx(0.03515625)
    assert (alone.verdict, among.verdict) == ("better", "undecided")
    assert among.corrected == pytest.approx(0.3515625)


def test_a_number_of_things_has_no_interval_at_every_stop() -> None:
    [difference] = anytime_differences([[3.0, 2.0, 5.0]], float("inf"))
    assert difference.interval is None
    assert difference.verdict == "undecided"
    assert difference.mean == pytest.approx(10 / 3)


def test_as_many_questions_as_are_needed_have_the_power() -> None:
    from statsmodels.stats.power import TTestPower

    differences = [1.0] * 30 + [0.0] * 150 + [-1.0] * 20
    needed = questions_needed(differences)
    assert needed is not None
    effect = 0.05 / (sum((each - 0.05) ** 2 for each in differences) / 199) ** 0.5
    reached = [TTestPower().power(effect, number, 0.05) for number in (needed - 1, needed)]
    assert reached[0] < 0.8 <= reached[1]


@each_case("differences", [[], [1.0], [0.5] * 9, [1.0, -1.0]])
def test_no_number_is_needed_where_none_can_be_told(differences: list[float]) -> None:
    assert questions_needed(differences) is None


@pytest.mark.parametrize(("less", "needed"), [(1e-12, None), (1e-3, 2), (0.2, 3), (0.5, 4)])
@pytest.mark.filterwarnings("error")
def test_large_effects_need_few_questions(less: float, needed: int | None) -> None:
    assert questions_needed([1.0] * 20 + [1 - less] * 20) == needed


def test_wins_losses_and_ties_keep_their_order_and_ignore_rounding() -> None:
    sorted_ = outcomes({"a": 0.5, "b": -1.0, "c": 0.1 + 0.2 - 0.3, "d": 0.01, "e": 0.0})
    assert (sorted_.wins, sorted_.losses, sorted_.ties) == (("a", "d"), ("b",), ("c", "e"))


points = st.dictionaries(st.text(max_size=2), st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1)


@given(points)
def test_the_front_has_what_no_other_beats(found: dict[str, tuple[int, int]]) -> None:
    front = pareto_front({name: (float(cost), float(quality)) for name, (cost, quality) in found.items()})
    beaten = {
        name
        for name, (cost, quality) in found.items()
        if any(c <= cost and q >= quality and (c, q) != (cost, quality) for c, q in found.values())
    }
    assert set(front) == found.keys() - beaten
    assert [found[name][0] for name in front] == sorted(found[name][0] for name in front)
