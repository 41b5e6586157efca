"""Which of several systems is recommended: the best, or a cheaper one that is shown to be about as good."""

from random import Random
from statistics import fmean

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.evaluation.comparison.differences import holm
from cotrail.evaluation.comparison.recommendation import Candidate, recommend
from cotrail.evaluation.comparison.sign_flips import sign_flip_test
from cotrail.evaluation.experiments.compare.recommended import choices, recommendation_table, sentence
from cotrail.evaluation.experiments.compare.runs import ComparedRun
from cotrail.evaluation.experiments.costs import Cost, Work
from tests.cases import each_case
from tests.unit.test_compare_tables import run


def candidate(name: str, right: str, cost: float | None) -> Candidate:
    return Candidate(name=name, scores={str(at): float(each == "+") for at, each in enumerate(right)}, cost=cost)


def test_a_cheaper_one_that_is_shown_to_be_about_as_good() -> None:
    """Of 2,000 questions two differ, so the cheaper one is at most 0.3 points behind."""
    found = recommend(
        [candidate("dear", "+" * 1000 + "-" * 1000, 9.0), candidate("cheap", "+" * 998 + "-" * 1002, 1.0)]
    )
    assert (found.best.name, found.chosen) == ("dear", "cheap")
    assert found.taken.behind == pytest.approx(0.001)
    assert 0.001 < found.taken.most_behind < 0.003


def test_that_no_difference_is_shown_recommends_nothing() -> None:
    """Seven of eight against six: the cheaper one may be far behind."""
    found = recommend([candidate("dear", "+++++++-", 9.0), candidate("cheap", "++++++--", 1.0)])
    other = found.standings[1]
    assert (found.chosen, other.is_worse, other.is_as_good) == ("dear", False, False)


@each_case(("questions", "chosen"), [(20, "dear"), (200, "cheap")])
def test_equal_differences_are_taken_for_rare_others(questions: int, chosen: str) -> None:
    """By the rule of three, systems that differ alike in all of n questions do otherwise in 3 / n of all at most."""
    dear, cheap = candidate("dear", "+" * questions, 9.0), candidate("cheap", "+" * questions, 1.0)
    assert recommend([dear, replace(cheap, scores=dict.fromkeys(cheap.scores, 0.999))]).chosen == chosen


def test_the_best_of_equal_ones_is_the_cheapest() -> None:
    assert recommend([candidate("a dear", "+-", 9.0), candidate("cheap", "+-", 1.0)]).chosen == "cheap"


def test_the_best_where_the_cheaper_is_shown_to_be_worse() -> None:
    found = recommend([candidate("cheap", "+" * 5 + "-" * 15, 1.0), candidate("dear", "+" * 20, 9.0)])
    assert [(each.name, each.is_worse) for each in found.standings] == [("dear", False), ("cheap", True)]
    assert found.chosen == "dear"
    assert found.standings[1].p_value == pytest.approx(2 / 2**15)


def test_the_best_where_a_cost_is_not_known() -> None:
    assert recommend([candidate("a", "++-", 1.0), candidate("b", "+++", None)]).chosen == "b"


def test_every_pair_counts_as_a_comparison() -> None:
    """The p-values are those of all three pairs, corrected together."""
    candidates = [candidate("a", "+" * 12, 1.0), candidate("b", "+" * 5 + "-" * 7, 1.0), candidate("c", "-" * 12, 1.0)]
    found = recommend(candidates)
    values = [list(each.scores.values()) for each in candidates]
    pairs = [(values[0], values[1]), (values[0], values[2]), (values[1], values[2])]
    tests = [sign_flip_test([x - y for x, y in zip(*pair, strict=True)], 0).p_value for pair in pairs]
    assert [each.p_value for each in found.standings[1:]] == holm(tests)[:2]


@settings(max_examples=20)
@given(st.lists(st.text("+-", min_size=6, max_size=6), min_size=1, max_size=4), st.randoms())
def test_the_order_of_the_candidates_decides_nothing(rights: list[str], chance: Random) -> None:
    candidates = [candidate(f"{number}", right, float(number)) for number, right in enumerate(rights)]
    mixed = list(candidates)
    chance.shuffle(mixed)
    assert recommend(candidates) == recommend(mixed)
    taken = recommend(candidates).taken
    assert not taken.is_worse
    assert taken.mean == fmean(next(each for each in candidates if each.name == taken.name).scores.values())


def test_of_equal_systems_the_best_is_seldom_called_better() -> None:
    """Four equal systems, 60 times: some system is called worse in at most one comparison of twenty."""
    chance = numpy.random.default_rng(3)
    wrong = 0
    for _ in range(60):
        rights = chance.random((4, 40)) < 0.5
        texts = ("".join("+" if each else "-" for each in row) for row in rights)
        found = recommend([candidate(f"{number}", text, 1.0) for number, text in enumerate(texts)])
        wrong += any(each.is_worse for each in found.standings)
    assert wrong <= 3


def finished(made: ComparedRun, *, tokens: int, ended: int | None = None) -> ComparedRun:
    """The run with these tokens in all, and with as many ended questions, all by default."""
    work = Work(steps=3, prompt_tokens=tokens)
    cost = Cost(asked=work, adopted=Work(), made=work, lost={}, lost_seconds=0.0)
    ends = {"answer": made.questions if ended is None else ended}
    return replace(made, asked=made.answered, cost=cost, ends=ends)


def test_a_comparison_ends_with_a_recommendation_and_its_cost() -> None:
    """Each dataset has its own; a run that isn't over keeps it back."""
    runs = [
        finished(run("ircot", "+++++++-", corpus="c"), tokens=8000),
        finished(run("direct", "++++++--"), tokens=800),
        finished(run("ircot", "++", dataset="iirc"), tokens=1, ended=1),
        finished(run("direct", "++", dataset="iirc"), tokens=1),
    ]
    (choice,) = choices(runs)
    assert sentence(choice) == (
        "On hotpotqa take hotpotqa/tiny/ircot, the best: 87.5 Answer EM for 1,000 tokens a question. Whether "
        "hotpotqa/tiny/direct, for 100 tokens, is worse isn't decided; about 65 questions would show it."
    )
    table = recommendation_table([choice])
    assert table is not None
    assert [(row.values["run"], row.values["standing"], row.chosen) for row in table.rows] == [
        ("hotpotqa/tiny/ircot", "best", True),
        ("hotpotqa/tiny/direct", "undecided", False),
    ]
