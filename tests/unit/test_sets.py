from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.errors import DemonstrationError
from cotrail.prompting.demonstrations import read_demonstrations
from cotrail.prompting.prompt import Demonstration, Demonstrations
from cotrail.prompting.sets import demonstration_sets

RELEASED = Path(__file__).parents[2].parent / "shared" / "data" / "ircot_prompts"

needs_released = pytest.mark.skipif(not RELEASED.is_dir(), reason="the released prompt files are not beside the repo")

TWENTY = Demonstrations(
    items=tuple(Demonstration(id=f"q{n}", paragraphs=(), question="Who?", answer=str(n)) for n in range(20))
)


def ids(sets: tuple[Demonstrations, ...]) -> list[list[str]]:
    return [[each.id for each in one.items] for one in sets]


def test_three_sets_of_fifteen_of_twenty_differ() -> None:
    sets = ids(demonstration_sets(TWENTY, 1))
    assert [len(set(one)) for one in sets] == [15, 15, 15]
    assert len({frozenset(one) for one in sets}) == 3


def test_a_draw_is_these_ids() -> None:
    assert ids(demonstration_sets(TWENTY, 13370, sets=2, size=5)) == [
        ["q10", "q16", "q14", "q4", "q2"],
        ["q7", "q12", "q3", "q9", "q13"],
    ]


@given(st.permutations(TWENTY.items), st.integers(0, 2**31 - 1))
def test_a_draw_does_not_depend_on_the_order_of_the_file(items: list[Demonstration], seed: int) -> None:
    assert ids(demonstration_sets(Demonstrations(items=tuple(items)), seed)) == ids(demonstration_sets(TWENTY, seed))


@given(st.integers(0, 2**31 - 1))
def test_other_forms_of_the_same_demonstrations_give_the_same_sets(seed: int) -> None:
    other = Demonstrations(items=tuple(replace(each, question="Which?", answer="none") for each in TWENTY.items))
    assert ids(demonstration_sets(other, seed)) == ids(demonstration_sets(TWENTY, seed))


@given(st.integers(0, 2**31 - 1), st.integers(1, 5))
def test_more_sets_come_behind_those_of_before(seed: int, sets: int) -> None:
    assert demonstration_sets(TWENTY, seed, sets=sets) == demonstration_sets(TWENTY, seed, sets=6)[:sets]


def test_another_seed_draws_other_sets() -> None:
    assert ids(demonstration_sets(TWENTY, 1)) != ids(demonstration_sets(TWENTY, 2))


def test_too_few_are_refused_with_the_numbers() -> None:
    with pytest.raises(DemonstrationError, match="a set of 21 demonstrations can't be drawn from 20"):
        demonstration_sets(TWENTY, 1, size=21)


@needs_released
@pytest.mark.parametrize("dataset", ["hotpotqa", "2wikimultihopqa", "iirc"])
def test_all_released_forms_of_a_dataset_give_the_same_sets(dataset: str) -> None:
    drawn = {
        str(ids(demonstration_sets(read_demonstrations(path), 7))) for path in (RELEASED / dataset).glob("gold_*.txt")
    }
    assert len(drawn) == 1
