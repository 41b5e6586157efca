"""Which of several systems is recommended: the best, or a cheaper one that is shown to be about as good."""

from random import Random

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.evaluation.comparison.differences import Reach
from cotrail.evaluation.comparison.recommendation import Candidate, recommend
from cotrail.evaluation.experiments.compare.experiment import ComparedRun
from cotrail.evaluation.experiments.compare.paper import report
from cotrail.evaluation.experiments.compare.recommended import choices, recommendation_table, sentence
from cotrail.evaluation.experiments.costs import Cost, QuestionCost, Work
from tests.cases import each_case
from tests.unit.test_compare_tables import run


def candidate(name: str, right: str, cost: float | None) -> Candidate:
    scores = {str(at): float(each == "+") for at, each in enumerate(right)}
    return Candidate(name=name, scores=scores, costs=None if cost is None else [cost] * len(right))


def test_a_cheaper_one_that_is_shown_to_be_about_as_good() -> None:
    """Of 2,000 questions two differ, so the cheaper one is less than half a point behind."""
    found = recommend(
        [candidate("dear", "+" * 1000 + "-" * 1000, 9.0), candidate("cheap", "+" * 998 + "-" * 1002, 1.0)]
    )
    assert (found.highest.name, found.chosen) == ("dear", "cheap")
    assert found.taken is not None
    assert found.taken.behind is not None
    assert found.taken.behind.mean == pytest.approx(0.001)
    assert 0.001 < found.taken.most_behind < 0.005


def test_that_no_difference_is_shown_decides_nothing() -> None:
    """Seven of eight against six: each may be far behind the other."""
    found = recommend([candidate("dear", "+++++++-", 9.0), candidate("cheap", "++++++--", 1.0)])
    assert (found.chosen, found.taken, found.front) == (None, None, ("cheap", "dear"))
    assert [(each.is_worse, each.is_as_good) for each in found.ranking] == [(False, False)] * 2


@each_case(("questions", "chosen"), [(150, None), (200, "cheap")])
def test_equal_answers_are_taken_for_rare_others(questions: int, chosen: str | None) -> None:
    """Systems that differ on none of n questions differ on 1 - 0.025 ** (1 / n) of all at most: 2.4 and 1.8 points."""
    dear, cheap = candidate("dear", "+" * questions, 9.0), candidate("cheap", "+" * questions, 1.0)
    assert recommend([dear, cheap]).chosen == chosen


@each_case(("right", "candidates"), [("-" * 8, 3), ("+", 2), ("-" * 2000, 2)])
def test_where_few_questions_or_no_right_answers_tell_nothing_is_decided(right: str, candidates: int) -> None:
    found = recommend([candidate(f"{number}", right, float(number)) for number in range(candidates)])
    assert found.chosen is None
    assert not any(each.is_worse for each in found.ranking)


def test_of_equal_ones_the_cheapest_stands_first() -> None:
    found = recommend([candidate("a dear", "+-", 9.0), candidate("cheap", "+-", 1.0)])
    assert (found.highest.name, found.front) == ("cheap", ("cheap",))


def test_rounding_makes_nothing_the_highest_and_no_number_of_questions_shows_it() -> None:
    """Means of repeats: one third and two thirds are as much as one and nothing."""
    dear = Candidate(name="dear", scores={"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}, costs=[9.0] * 4)
    cheap = Candidate(name="cheap", scores={"a": 0.0, "b": 2 / 3, "c": 1 / 3, "d": 0.0}, costs=[1.0] * 4)
    found = recommend([dear, cheap])
    assert [each.name for each in found.ranking] == ["cheap", "dear"]
    behind = found.ranking[1].behind
    assert behind is not None
    assert (behind.mean, behind.needed) == (0.0, None)


def test_the_best_where_the_cheaper_is_shown_to_be_worse() -> None:
    found = recommend([candidate("cheap", "+" * 5 + "-" * 15, 1.0), candidate("dear", "+" * 20, 9.0)])
    assert [(each.name, each.is_worse) for each in found.ranking] == [("dear", False), ("cheap", True)]
    assert found.chosen == "dear"
    behind = found.ranking[1].behind
    assert behind is not None
    assert behind.corrected == pytest.approx(2 / 2**15)


def test_the_highest_of_the_good_ones_where_a_cost_is_not_known() -> None:
    found = recommend([candidate("a", "+" * 10 + "-" * 490, 1.0), candidate("b", "+" * 490 + "-" * 10, None)])
    assert (found.chosen, found.front) == ("b", ())


def test_every_pair_counts_as_a_comparison() -> None:
    """The p-values are those of all three pairs, corrected together, and so are the intervals."""
    candidates = [candidate("a", "+" * 12, 1.0), candidate("b", "+" * 5 + "-" * 7, 1.0), candidate("c", "-" * 12, 1.0)]
    found = recommend(candidates)
    for place, wins in ((1, 7), (2, 12)):
        behind = found.ranking[place].behind
        assert behind is not None
        assert behind.interval is not None
        assert behind.corrected == pytest.approx(3 * 2 / 2**wins)
        assert behind.interval.level == pytest.approx(1 - 0.05 / 3)


@settings(max_examples=20)
@given(st.lists(st.text("+-", min_size=6, max_size=6), min_size=1, max_size=4), st.randoms())
def test_the_order_of_the_candidates_decides_nothing(rights: list[str], chance: Random) -> None:
    candidates = [candidate(f"{number}", right, float(number)) for number, right in enumerate(rights)]
    mixed = list(candidates)
    chance.shuffle(mixed)
    assert recommend(candidates) == recommend(mixed)
    found = recommend(candidates)
    assert {each.name for each in found.ranking} == {each.name for each in candidates}
    assert set(found.front) <= {each.name for each in candidates}
    if found.taken:
        assert not found.taken.is_worse


def test_of_equal_systems_the_highest_is_seldom_called_better() -> None:
    """Four equal systems, 60 times: some system is called worse in at most one comparison of twenty."""
    chance = numpy.random.default_rng(3)
    wrong = 0
    for _ in range(60):
        rights = chance.random((4, 40)) < 0.5
        texts = ("".join("+" if each else "-" for each in row) for row in rights)
        found = recommend([candidate(f"{number}", text, 1.0) for number, text in enumerate(texts)])
        wrong += any(each.is_worse for each in found.ranking)
    assert wrong <= 3


@each_case(("cheaper", "questions"), [(1, 150), (1, 400), (5, 150), (5, 400)])
def test_one_that_is_two_points_behind_is_seldom_taken(cheaper: int, questions: int) -> None:
    """The cheaper systems lose 2.1 % of the questions that the dear one answers; any of them taken is wrong."""
    chance = numpy.random.default_rng(cheaper)
    wrong = 0
    for _ in range(200):
        lost = chance.random((cheaper, questions)) < 0.021
        texts = ("".join("-" if each else "+" for each in row) for row in lost)
        others = [candidate(f"{number}", text, 1.0 + number) for number, text in enumerate(texts)]
        wrong += recommend([candidate("dear", "+" * questions, 9.0), *others]).chosen not in (None, "dear")
    assert wrong <= 0.05 * 200


def finished(made: ComparedRun, *, tokens: int, ended: int | None = None, unasked: int = 0) -> ComparedRun:
    """The run with these tokens in all, and with as many ended questions, all by default, before unasked ones."""
    work = Work(steps=3, prompt_tokens=tokens)
    cost = Cost(asked=work, adopted=Work(), made=work, lost={}, lost_seconds=0.0)
    each = QuestionCost(work=Work(steps=1, prompt_tokens=tokens // len(made.answered)))
    over = made.questions if ended is None else ended
    reach = Reach(ended={str(number): number < over for number in range(made.questions + unasked)})
    return replace(made, asked=made.answered, cost=cost, reach=reach, costs=dict.fromkeys(made.answered, each))


def test_what_a_budget_left_over_counts_nowhere() -> None:
    """Two runs with the same answers, of which one was cut after 20 of 150 questions."""
    whole = finished(run("direct", "+-" * 75), tokens=150_000)
    cut = finished(run("ircot", "+-" * 10, corpus="c"), tokens=40_000, unasked=130)
    (choice,) = choices([whole, cut])
    assert choice.questions == 20
    assert sentence(choice).endswith(
        " Compared are the first 20 questions that were asked in every run, as not all were asked to their end: the "
        "intervals hold wherever a run ends. Never asked: 130 of hotpotqa/tiny/ircot."
    )
    behind = choice.recommendation.ranking[1].behind
    assert behind is not None
    assert (behind.mean, behind.verdict) == (0.0, "undecided")
    assert (behind.test, behind.corrected) == (None, None)
    assert behind.interval is not None
    assert behind.interval.method == "empirical-bernstein"
    assert {each.name: each.cost for each in choice.recommendation.ranking}["hotpotqa/tiny/ircot"] == 2000
    scores = next(table for table in report([whole, cut]).tables if table.name == "scores")
    assert [(row.values["questions"], row.values["unasked"]) for row in scores.rows] == [(150, None), (150, 130)]


def test_costs_are_those_of_the_questions_that_are_compared_and_one_in_all_tables() -> None:
    """The longer run has dear questions that the other one never had."""
    longer = finished(run("direct", "+-" * 10), tokens=20 * 100)
    keys = list(longer.asked)
    costs = {key: QuestionCost(work=Work(prompt_tokens=100 if at < 8 else 5000)) for at, key in enumerate(keys)}
    longer = replace(longer, costs=costs)
    shorter = finished(run("ircot", "+-" * 4, corpus="c"), tokens=8 * 200)
    (choice,) = choices([longer, shorter])
    cost = {each.name: each.cost for each in choice.recommendation.ranking}
    assert cost == {"hotpotqa/tiny/direct": 100, "hotpotqa/tiny/ircot": 200}
    assert choice.recommendation.front == ("hotpotqa/tiny/direct",)
    found = {table.name: table for table in report([shorter, shorter]).tables}
    assert found["costs"].rows[0].values["prompt_tokens"] == 200
    varied = recommend([Candidate(name="a", scores={"x": 1.0, "y": 1.0, "z": 1.0}, costs=[1.0, 2.0, 3.0])])
    assert varied.highest.cost_interval is not None
    assert varied.highest.cost_interval.high == pytest.approx(2 + 4.30265 / 3**0.5, abs=1e-4)


def test_a_comparison_ends_with_what_is_known_and_its_cost() -> None:
    """Each dataset has its own; a run that isn't over keeps it back."""
    runs = [
        finished(run("ircot", "+++++++-", corpus="c"), tokens=8000),
        finished(run("direct", "++++++--"), tokens=800),
        finished(run("ircot", "++", dataset="iirc"), tokens=1, ended=1),
        finished(run("direct", "++", dataset="iirc"), tokens=1),
    ]
    (choice,) = choices(runs)
    assert sentence(choice) == (
        "On hotpotqa nothing is decided: 8 questions leave it open for each run whether it is more than 2 points "
        "behind another. On the front of quality and cost: hotpotqa/tiny/direct, 75.0 Answer EM for 100 tokens a "
        "question; hotpotqa/tiny/ircot, 87.5 Answer EM for 1,000 tokens a question. Which of hotpotqa/tiny/ircot and "
        "hotpotqa/tiny/direct is better, about 65 questions would show."
    )
    table = recommendation_table([choice])
    assert table is not None
    assert [(row.values["run"], row.values["standing"], row.values["front"], row.chosen) for row in table.rows] == [
        ("hotpotqa/tiny/ircot", "highest", "on it", False),
        ("hotpotqa/tiny/direct", "undecided", "on it", False),
    ]


def test_a_recommendation_says_why_and_what_is_open() -> None:
    runs = [
        finished(run("ircot", "+" * 400, corpus="c"), tokens=400_000),
        finished(run("one-step", "+" * 380 + "-" * 20), tokens=200_000),
        finished(run("direct", "+" * 200 + "-" * 200), tokens=40_000),
    ]
    (choice,) = choices(runs)
    best = "the best: 100.0 Answer EM for"
    assert sentence(choice) == f"On hotpotqa take hotpotqa/tiny/ircot, {best} 1,000 tokens a question."
    (nothing,) = choices([finished(run(name, "-" * 8), tokens=8) for name in ("ircot", "direct")])
    assert sentence(nothing) == "On hotpotqa nothing is decided: no run scores anything in 8 questions."
    costs = {"ircot": 9000, "direct": 6000}
    (same,) = choices([finished(run(name, "+" * 300), tokens=tokens) for name, tokens in costs.items()])
    assert sentence(same) == f"On hotpotqa take hotpotqa/tiny/direct, {best} 20 tokens a question."
