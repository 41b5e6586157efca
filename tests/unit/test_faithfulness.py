"""Faithfulness functions and faithful inference: the paper's example by hand, and an independent implementation."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotrail.faithfulness.rules import inferred
from cotrail.faithfulness.weighing import (
    NO_EVIDENCE,
    Function,
    Scores,
    Thresholds,
    Vote,
    fact_score,
    faithfulness,
    infer,
)
from tests.cases import each_case

THRESHOLDS = Thresholds()
FUNCTIONS: tuple[Function, ...] = (1, 2, 3)

# The running example of section 3: its sentences against the paragraphs K1 (Aristotle) and K2 (the first laptop).
DIED_2000 = Scores(similarity=0.70, entailment=0.02, contradiction=0.995)
DIED_322BC = Scores(similarity=0.75, entailment=0.90, contradiction=0.02)
LAPTOP_1980 = Scores(similarity=0.80, entailment=0.95, contradiction=0.01)
LAPTOP_2000 = Scores(similarity=0.78, entailment=0.01, contradiction=0.995)
R1, R2, R3 = (DIED_2000, LAPTOP_1980), (DIED_322BC, LAPTOP_2000), (DIED_322BC, LAPTOP_1980)
STATED = ("yes", "no", "no")

Ranked = list[tuple[float, int, float, int, str]]
"""Of each prediction its weight, how many chains state it, the f of its best chain, that one's number, and itself."""


def scored(similarity: float = 0.0, entailment: float = 0.0, contradiction: float = 0.0) -> Scores:
    return Scores(similarity=similarity, entailment=entailment, contradiction=contradiction)


def votes(*pairs: tuple[str, float]) -> list[Vote]:
    return [Vote(*pair) for pair in pairs]


def independent_terms(facts: Sequence[Scores], function: Function, thresholds: Thresholds) -> "np.ndarray[tuple[int]]":
    """The terms of the appendix's sums as printed there, indicators and all."""
    rows = [(each.similarity, each.entailment, each.contradiction) for each in facts]
    m, e, c = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    t_m, t_e, t_c = thresholds.similarity, thresholds.entailment, thresholds.contradiction
    return {1: m * (m >= t_m) + e * (m < t_m) - c, 2: m + e, 3: e * (e >= t_e) - c * (c >= t_c)}[function]


def exact_sum(values: Sequence[float]) -> float:
    return float(sum(map(Fraction, values), Fraction(0)))


def independent_ranking(predictions: Sequence[str], f: Sequence[float], *, voting: bool) -> Ranked:
    """Equation (1) by sums of fractions, and the rule for ties by one stable sort after the other."""
    rows: Ranked = []
    for stated in set(predictions) - {""}:
        numbers = [number for number, prediction in enumerate(predictions) if prediction == stated]
        greatest = max(f[number] for number in numbers)
        best = next(number for number in numbers if f[number] == greatest)
        weight = exact_sum([f[number] for number in numbers]) if voting else greatest
        rows.append((weight, len(numbers), greatest, best, stated))
    rows.sort(key=itemgetter(3))
    for column in (2, 1, 0):
        rows.sort(key=itemgetter(column), reverse=True)
    return rows


@each_case(
    ("function", "expected"),
    [
        # (0.70 - 0.995) + (0.80 - 0.01); (0.75 - 0.02) + (0.78 - 0.995); (0.75 - 0.02) + (0.80 - 0.01)
        (1, (0.495, 0.515, 1.52)),
        # (0.70 + 0.02) + (0.80 + 0.95); (0.75 + 0.90) + (0.78 + 0.01); (0.75 + 0.90) + (0.80 + 0.95)
        (2, (2.47, 2.44, 3.40)),
        # -0.995 + 0.95; 0.90 - 0.995; 0.90 + 0.95
        (3, (-0.045, -0.095, 1.85)),
    ],
)
def test_the_running_example_has_the_papers_outcome_under_each_function(
    function: Function, expected: tuple[float, ...]
) -> None:
    f = [faithfulness(chain, function, THRESHOLDS) for chain in (R1, R2, R3)]
    assert f == pytest.approx(expected, abs=1e-12)

    cast = [Vote(prediction, score) for prediction, score in zip(STATED, f, strict=True)]
    for voting, weight in ((True, expected[1] + expected[2]), (False, expected[2])):
        inference = infer(cast, voting=voting)
        assert (inference.prediction, inference.chosen) == ("no", 2)
        assert [(each.prediction, each.chains) for each in inference.predictions] == [("no", (1, 2)), ("yes", (0,))]
        assert [each.weight for each in inference.predictions] == pytest.approx((weight, expected[0]), abs=1e-12)


def test_voting_and_the_best_chain_may_disagree() -> None:
    cast = votes(("no", 0.5), ("yes", 0.75), ("no", 0.5))
    assert infer(cast, voting=True).prediction == "no"
    assert infer(cast, voting=False).prediction == "yes"
    assert infer(cast, voting=False).chosen == 1


@each_case(
    ("scores", "function", "expected"),
    [
        (scored(similarity=0.5, entailment=0.9, contradiction=0.25), 1, 0.25),
        (scored(similarity=0.4999, entailment=0.9, contradiction=0.1), 1, 0.8),
        (scored(similarity=0.25, entailment=0.5, contradiction=0.5), 2, 0.75),
        (scored(similarity=1.0, entailment=0.6, contradiction=0.4), 3, 0.6),
        (scored(similarity=1.0, entailment=0.5999, contradiction=0.4), 3, 0.0),
        (scored(similarity=1.0, entailment=0.01, contradiction=0.99), 3, -0.99),
        (scored(similarity=1.0, entailment=0.0101, contradiction=0.9899), 3, 0.0),
        (NO_EVIDENCE, 1, 0.0),
        (NO_EVIDENCE, 2, -1.0),
        (NO_EVIDENCE, 3, 0.0),
    ],
)
def test_a_score_that_equals_its_threshold_has_reached_it(scores: Scores, function: Function, expected: float) -> None:
    assert fact_score(scores, function, THRESHOLDS) == pytest.approx(expected, abs=1e-12)


@each_case("function", FUNCTIONS)
def test_a_chain_without_facts_has_no_faithfulness(function: Function) -> None:
    assert faithfulness((), function, THRESHOLDS) == 0.0


@each_case("voting", [True, False])
def test_without_a_prediction_there_is_no_answer(*, voting: bool) -> None:
    for cast in ([], votes(("", 5.0)), votes(("", 1.0), ("", 2.0))):
        inference = infer(cast, voting=voting)
        assert (inference.prediction, inference.chosen, inference.predictions) == ("", None, ())


@each_case("voting", [True, False])
def test_a_chain_that_states_nothing_never_wins_and_a_negative_weight_may(*, voting: bool) -> None:
    inference = infer(votes(("", 9.0), ("no", -2.0), ("yes", -3.0)), voting=voting)
    assert (inference.prediction, inference.chosen) == ("no", 1)
    assert [each.weight for each in inference.predictions] == [-2.0, -3.0]


@each_case(
    ("cast", "prediction", "chosen"),
    [
        (votes(("yes", 1.0), ("no", 0.5), ("no", 0.5)), "no", 1),
        (votes(("yes", 0.5), ("yes", 0.5), ("no", 0.25), ("no", 0.75)), "no", 3),
        (votes(("yes", 0.5), ("no", 0.5)), "yes", 0),
        (votes(("no", 0.5), ("yes", 0.5), ("yes", 0.0), ("no", 0.0)), "no", 0),
        (votes(("no", 0.0), ("yes", 0.5), ("yes", 0.0), ("no", 0.5)), "yes", 1),
        (votes(("yes", 0.1), ("yes", 0.2), ("yes", 0.3), ("no", 0.3), ("no", 0.2), ("no", 0.1)), "yes", 2),
    ],
)
def test_equal_sums_go_to_more_chains_then_the_better_one_then_the_earlier_one(
    cast: list[Vote], prediction: str, chosen: int
) -> None:
    inference = infer(cast, voting=True)
    assert inference.predictions[0].weight == inference.predictions[1].weight
    assert (inference.prediction, inference.chosen) == (prediction, chosen)


def test_without_voting_equally_faithful_chains_are_told_apart_in_the_same_way() -> None:
    assert infer(votes(("yes", 1.0), ("no", 1.0), ("no", 0.0)), voting=False).chosen == 1
    assert infer(votes(("yes", 0.0), ("no", 1.0), ("yes", 1.0), ("no", 0.0)), voting=False).chosen == 1


def test_self_consistency_counts_chains() -> None:
    inference = infer([Vote(each, 1.0) for each in ("b", "a", "", "a", "c", "c")], voting=True)
    assert (inference.prediction, inference.chosen) == ("a", 1)
    assert [(each.prediction, each.weight) for each in inference.predictions] == [("a", 2.0), ("c", 2.0), ("b", 1.0)]


# Few different values, those of the thresholds among them, so that ties and scores at a threshold are common.
similarities = st.sampled_from([-1.0, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0]) | st.floats(-1, 1)
probabilities = st.sampled_from([0.0, 0.25, 0.5, 0.6, 0.75, 0.99, 1.0]) | st.floats(0, 1)
scores = st.builds(Scores, similarity=similarities, entailment=probabilities, contradiction=probabilities)
chains = st.lists(st.tuples(st.sampled_from(["yes", "no", "1980", ""]), st.lists(scores, max_size=4)), max_size=8)
thresholds = st.just(THRESHOLDS) | st.builds(
    Thresholds, similarity=similarities, entailment=probabilities, contradiction=probabilities
)


@settings(max_examples=500)
@given(sampled=chains, limits=thresholds)
def test_an_independent_implementation_comes_to_the_same(
    *, sampled: list[tuple[str, list[Scores]]], limits: Thresholds
) -> None:
    predictions = [prediction for prediction, _ in sampled]
    for function, voting in product(FUNCTIONS, (True, False)):
        f = [faithfulness(facts, function, limits) for _, facts in sampled]
        assert f == [exact_sum(independent_terms(facts, function, limits).tolist()) for _, facts in sampled]

        inference = infer([Vote(*each) for each in zip(predictions, f, strict=True)], voting=voting)
        ranking = independent_ranking(predictions, f, voting=voting)
        assert [(each.weight, len(each.chains), each.prediction) for each in inference.predictions] == [
            (weight, count, stated) for weight, count, _, _, stated in ranking
        ]
        assert inference.prediction == (ranking[0][4] if ranking else "")
        assert inference.chosen == (ranking[0][3] if ranking else None)


ties = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([-1.0, 0.0, 0.1, 0.2, 0.3])), max_size=9)


@settings(max_examples=1000)
@given(pairs=ties)
def test_ties_are_broken_as_an_independent_implementation_breaks_them(pairs: list[tuple[str, float]]) -> None:
    for voting in (True, False):
        ranking = independent_ranking([stated for stated, _ in pairs], [f for _, f in pairs], voting=voting)
        inference = infer(votes(*pairs), voting=voting)
        assert [each.prediction for each in inference.predictions] == [row[4] for row in ranking]
        assert inference.chosen == (ranking[0][3] if ranking else None)


@given(st.lists(scores, max_size=12), st.sampled_from(FUNCTIONS), st.data())
def test_the_order_of_sentences_does_not_matter(facts: list[Scores], function: Function, data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(facts))
    assert faithfulness(shuffled, function, THRESHOLDS) == faithfulness(facts, function, THRESHOLDS)


@given(pairs=ties, place=st.integers(0, 9), f=st.floats(-9, 9), voting=st.booleans())
def test_a_chain_without_a_prediction_changes_nothing_but_numbers(
    *, pairs: list[tuple[str, float]], place: int, f: float, voting: bool
) -> None:
    place = min(place, len(pairs))
    before = infer(votes(*pairs), voting=voting)
    after = infer(votes(*pairs[:place], ("", f), *pairs[place:]), voting=voting)
    assert after.prediction == before.prediction
    assert [each.weight for each in after.predictions] == [each.weight for each in before.predictions]
    assert after.chosen == (None if before.chosen is None else before.chosen + (before.chosen >= place))


halves = st.integers(-6, 6).map(lambda number: number / 2)


@given(pairs=st.lists(st.tuples(st.sampled_from(["yes", "no", "unclear"]), halves), max_size=9), voting=st.booleans())
def test_by_the_released_rules_yes_and_no_are_held_against_each_other_from_nothing_on(
    *, pairs: list[tuple[str, float]], voting: bool
) -> None:
    def weight(verdict: str) -> float:
        f = [each for stated, each in pairs if stated == verdict]
        return sum(f) if voting else max([0.0, *f])

    inference = inferred(votes(*pairs), "commonsense", "released", voting=voting)
    yes, no = weight("yes"), weight("no")
    assert inference.prediction == ("unclear" if yes == no else "yes" if yes > no else "no")
    standing = [(f, -number) for number, (stated, f) in enumerate(pairs) if stated == inference.prediction]
    assert inference.chosen == (-max(standing)[1] if standing else None)
    assert [each.prediction for each in inference.predictions[:1]] == ([inference.prediction] if pairs else [])


@given(pairs=st.lists(st.tuples(st.sampled_from(["true", "false", "unclear"]), halves), min_size=1, max_size=10))
def test_by_the_released_rules_the_first_of_the_heaviest_statements_wins_elsewhere(
    pairs: list[tuple[str, float]],
) -> None:
    inference = inferred(votes(*pairs), "tabular", "released", voting=True)
    weights = {stated: sum(f for other, f in pairs if other == stated) for stated, _ in pairs}
    heaviest = [stated for stated in weights if weights[stated] == max(weights.values())]
    assert inference.prediction == heaviest[0]
    assert {each.prediction: each.weight for each in inference.predictions} == weights
