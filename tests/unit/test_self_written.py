"""Demonstrations that a model wrote itself (Auto-CoT)."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.demonstrations import AnswerForm
from cotrail.data.demonstrations.self_written import Simple, SolvedQuestion, acceptable, clusters, self_written
from cotrail.data.demonstrations.sets import in_form, read_demonstrations, write_demonstrations
from cotrail.errors import DemonstrationError
from tests.cases import each_case

Similarities = list[list[float]]


def on_circle(*degrees: float) -> Similarities:
    """Similarities of unit vectors at these angles."""
    return [[math.cos(math.radians(one - other)) for other in degrees] for one in degrees]


def solved(name: str, **changes: Any) -> SolvedQuestion:
    made = SolvedQuestion(id=name, question=f"Where is {name}?", steps=("1. It is there.", "2. So."), answer="There.")
    return replace(made, **changes)


APART = on_circle(0, 100, 1, 102, 3, 101, 240)
"""Texts 0, 2 and 4 lie together, around 2; 1, 3 and 5 around 5; 6 lies alone."""


@each_case("seed", range(5))
def test_texts_that_lie_together_are_a_cluster_the_nearest_to_its_centre_first(seed: int) -> None:
    found = clusters(APART, 3, seed)
    assert sorted(found) == [(2, 0, 4), (5, 1, 3), (6,)]
    assert clusters(APART, 3, seed) == found


def test_one_cluster_has_all_texts_and_as_many_as_there_are_have_one_each() -> None:
    assert [set(each) for each in clusters(APART, 1, 0)] == [set(range(7))]
    assert sorted(clusters(APART, 7, 0)) == [(place,) for place in range(7)]


def test_texts_that_are_all_alike_are_one_cluster() -> None:
    assert clusters([[1.0] * 4] * 4, 2, 0) == ((0, 1, 2, 3),)


@settings(max_examples=50)
@given(st.lists(st.floats(0, 360), min_size=1, max_size=12), st.integers(1, 12), st.integers(0, 2**31))
def test_every_text_is_in_one_cluster(degrees: list[float], number: int, seed: int) -> None:
    found = clusters(on_circle(*degrees), min(number, len(degrees)), seed)
    assert sorted(place for each in found for place in each) == list(range(len(degrees)))
    assert 1 <= len(found) <= number


def test_each_cluster_gives_its_first_acceptable_chain_and_one_without_any_gives_none() -> None:
    bad: dict[int, dict[str, Any]] = {2: {"answer": " "}, 6: {"steps": ("It goes on",)}}
    made = self_written([solved(f"q{n}", **bad.get(n, {})) for n in range(7)], APART, 3, 0, Simple())
    assert {each.id for each in made.items} == {"q0", "q5"}


@each_case(
    "changes",
    [
        {"question": "word " * 61},
        {"steps": ("It is.",) * 6},
        {"steps": ()},
        {"steps": ("It is.", "It is cut")},
        {"answer": "\n"},
    ],
)
def test_long_unfinished_and_unanswered_chains_are_not_acceptable(changes: dict[str, Any]) -> None:
    assert not acceptable(solved("q", **changes), Simple())


@each_case("changes", [{}, {"question": "word " * 60}, {"steps": ("It is.",) * 5}])
def test_chains_at_the_limits_are_acceptable(changes: dict[str, Any]) -> None:
    assert acceptable(solved("q", **changes), Simple())


def test_demonstrations_are_read_back_from_their_file(tmp_path: Path) -> None:
    made = self_written([solved("q", question="Where\nis it?")], [[1.0]], 1, 0, Simple())
    [item] = made.items
    assert item.question == "Where is it?"
    assert item.answer == "Let's think step by step. 1. It is there. 2. So. The answer is There."
    path = tmp_path / "d.txt"
    path.write_text(write_demonstrations(made))
    assert read_demonstrations(path) == made
    assert in_form(made, AnswerForm.COT) == made
    assert in_form(made, AnswerForm.DIRECT).items[0].answer == "There"


def test_too_few_questions_and_none_that_is_acceptable_are_refused() -> None:
    with pytest.raises(DemonstrationError, match="8 clusters need as many answered questions, and there are 1"):
        self_written([solved("q")], [[1.0]], 8, 0, Simple())
    with pytest.raises(DemonstrationError, match="no chain has at most 1 steps"):
        self_written([solved("q")], [[1.0]], 1, 0, Simple(steps=1))
