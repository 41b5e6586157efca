"""Families of comparisons: the promise that equal systems are seldom called different, by simulation; and the parts."""

import random
from itertools import combinations

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotrail.evaluation.comparison.differences import (
    ALPHA,
    ComparedQuestions,
    Demands,
    Reach,
    anytime_differences,
    anytime_interval,
    compared_questions,
    difference_interval,
    difference_test,
    differences_of,
    fixed_differences,
    questions_needed,
)
from cotrail.evaluation.comparison.recommendation import outcomes, pareto_front
from cotrail.evaluation.metrics.confidence_intervals import confidence_sequence
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
def test_of_comparisons_of_equal_systems_few_are_called_different(systems: int, partial: bool) -> None:  # noqa: FBT001
    """A family counts where any of its pairs is called different; more than this has a probability below 0.001."""
    chance = numpy.random.default_rng(systems)
    called = 0
    for _ in range(SIMULATED):
        found = fixed_differences(equal_systems(chance, systems, partial=partial), 1.0)
        called += any(each.shown for each in found)
    assert called <= ALPHA * SIMULATED + 3.1 * (SIMULATED * ALPHA * (1 - ALPHA)) ** 0.5


def test_lopsided_differences_of_equal_means_are_seldom_called_different() -> None:
    """Four of five questions are won by 0.2 and the fifth is lost by 0.8: on 20 questions, often none is lost."""
    chance = numpy.random.default_rng(4)
    drawn = (numpy.where(chance.random(20) < 0.2, -0.8, 0.2).tolist() for _ in range(400))
    assert sum(difference.shown for each in drawn for difference in fixed_differences([each], 1.0)) <= 0.05 * 400


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
        called += any(fixed_differences([stop], 1.0)[0].shown for stop in stops)
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


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.3, 0.3, 1.0]), max_size=25), max_size=4),
    st.sampled_from([0.2, 0.05, 0.001]),
)
def test_intervals_leave_0_out_where_a_difference_is_shown(family: list[list[float]], alpha: float) -> None:
    for each in fixed_differences(family, 1.0, [Demands(alpha=alpha)] * len(family)):
        assert each.shown == (each.interval is not None and each.interval.side != 0)
        assert each.shown == (each.corrected is not None and each.corrected <= alpha)
        if each.interval and each.mean is not None:
            assert each.interval.level == pytest.approx(1 - alpha / sum(map(bool, family)))
            assert each.interval.low <= each.mean + 1e-9
            assert each.mean - 1e-9 <= each.interval.high


def test_a_difference_has_to_matter() -> None:
    """20 wins and 4 losses of 60 questions: shown at 5 %, not at 0.01 %, and no 60 points."""
    differences = [1.0] * 20 + [-1.0] * 4 + [0.0] * 36
    usual, strict, large = (
        fixed_differences([differences], 1.0, [demands])[0]
        for demands in (Demands(), Demands(alpha=0.0001), Demands(least=0.6))
    )
    assert (usual.shown, usual.verdict) == (True, "better")
    assert (strict.shown, strict.verdict) == (False, "undecided")
    assert (large.shown, large.verdict, large.matters) == (True, "undecided", False)
    assert strict.interval is not None
    assert strict.interval.level == 0.9999
    assert (strict.needed or 0) > (usual.needed or 0)
    assert fixed_differences([differences], 1.0, [Demands(least=16 / 60)])[0].verdict == "better"
    assert anytime_differences([differences * 9], 1.0, [Demands(least=0.6)])[0].verdict == "undecided"


def test_of_numbers_of_things_neither_is_better() -> None:
    from scipy import stats

    found, back, same = fixed_differences([[3.0, 2.0, 5.0], [-3.0, -2.0, -5.0], [2.0] * 8], float("inf"))
    assert (found.verdict, back.verdict, same.verdict) == ("undecided", "undecided", "more")
    [alone] = fixed_differences([[3.0, 2.0, 5.0] * 3], float("inf"))
    assert alone.test is not None
    assert (alone.verdict, alone.test.method) == ("more", "student-t")
    assert alone.test.p_value == pytest.approx(stats.ttest_1samp([3.0, 2.0, 5.0] * 3, 0).pvalue)
    assert same.interval is None


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


def test_of_scores_of_0_and_1_it_is_mcnemars_test() -> None:
    found = difference_test([1.0] * 12 + [-1.0] * 3 + [0.0], 1.0)
    assert found is not None
    assert found.method == "mcnemar"
    assert found.p_value == pytest.approx(0.03515625)
    assert difference_test([0.5, 1.0], 1.0) != difference_test([1.0, 1.0], 1.0)
    assert difference_test([], 1.0) is None


def test_equal_systems_may_yet_differ_on_other_questions() -> None:
    found = difference_interval([0.0] * 150, 1.0)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((-0.0243, 0.0243), abs=1e-4)
    assert difference_interval([], 1.0) is None


def test_the_interval_at_every_stop_is_that_of_a_confidence_sequence() -> None:
    differences = [1.0, 0.0, -1.0, 1.0] * 30
    found, theirs = anytime_interval(differences, span=1.0), confidence_sequence(differences, 1.0, -1.0)
    assert found is not None
    assert theirs is not None
    assert (found.low, found.high, found.level) == (theirs.low, theirs.high, 0.95)
    assert anytime_interval([], span=1.0) is None


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


LEFT = [1, -2 / 3, -1 / 3, 0]
"""Wins and losses that sum to nothing, but for the last bit."""


@each_case("differences", [[], [1.0], [0.5] * 9, [1.0, -1.0], LEFT, [0.1, 0.2, -0.3] * 7])
def test_no_number_is_needed_where_none_can_be_told(differences: list[float]) -> None:
    assert questions_needed(differences) is None


@pytest.mark.parametrize(("less", "needed"), [(1e-12, None), (1e-3, 2), (0.2, 3), (0.5, 4)])
@pytest.mark.filterwarnings("error")
def test_large_effects_need_few_questions(less: float, needed: int | None) -> None:
    assert questions_needed([1.0] * 20 + [1 - less] * 20) == needed


def test_wins_and_losses_that_sum_to_nothing_are_a_difference_of_0() -> None:
    assert sum(LEFT) != 0
    [fixed], [anytime] = fixed_differences([LEFT], 1.0), anytime_differences([LEFT], 1.0)
    assert [(each.mean, each.needed, each.verdict) for each in (fixed, anytime)] == [(0.0, None, "undecided")] * 2


@each_case("alpha", [0.05, 0.05 / 15, 1e-6])
@pytest.mark.filterwarnings("error")
def test_of_any_size_a_difference_needs_some_number_of_questions(alpha: float) -> None:
    """More where it is smaller, and where equal systems are to be called different less often."""
    sizes = [10.0**-power for power in range(9)]
    numbers = [questions_needed([1.0, -1.0] * 50 + [size], alpha) for size in sizes]
    needed = [number for number in numbers if number is not None]
    assert len(needed) == len(sizes)
    assert needed == sorted(needed)
    assert needed[0] >= (questions_needed([1.0, -1.0] * 50 + [1.0]) or 0)


def test_wins_losses_and_ties_keep_their_order_and_ignore_rounding() -> None:
    sorted_ = outcomes({"a": 0.5, "b": -1.0, "c": 0.1 + 0.2 - 0.3, "d": 0.01, "e": 0.0})
    assert (sorted_.wins, sorted_.losses, sorted_.ties) == (("a", "d"), ("b",), ("c", "e"))


points = st.dictionaries(st.text(max_size=2), st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1)


def test_rounding_puts_nothing_on_the_front() -> None:
    assert pareto_front({"cheap": (1.0, 0.3), "dear": (9.0, 0.1 + 0.2)}) == ("cheap",)


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


def test_what_is_compared_is_the_longest_beginning_that_has_ended_in_every_run() -> None:
    """The cut run came to c last, so that nothing behind b is known to be like the questions before it."""
    whole = Reach(ended=dict.fromkeys("xabcd", True))
    cut = Reach(ended={"d": True, "b": True, "c": False, "a": True, "y": False})
    assert compared_questions([whole, cut]) == ComparedQuestions(keys=("d", "b"), left_out=2, is_fixed=False)
    assert compared_questions([whole, whole]) == ComparedQuestions(keys=tuple("xabcd"), left_out=0, is_fixed=True)
    stopped = Reach(ended=whole.ended, until="width(answer_f1) < 0.05")
    assert compared_questions([whole, stopped]) == ComparedQuestions(keys=tuple("xabcd"), left_out=0, is_fixed=False)


def test_no_p_value_is_given_where_the_number_of_questions_was_not_fixed() -> None:
    [fixed] = differences_of([[1.0] * 12], 1.0, is_fixed=True)
    [at_a_stop] = differences_of([[1.0] * 12], 1.0, is_fixed=False)
    assert fixed.corrected == pytest.approx(2 / 2**12)
    assert (at_a_stop.test, at_a_stop.corrected) == (None, None)
    assert at_a_stop.interval is not None
    assert at_a_stop.interval.method == "empirical-bernstein"
