import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.demonstrations import Demonstration, Demonstrations
from cotrail.data.demonstrations.sets import demonstration_sets, listed_set, read_demonstrations
from cotrail.errors import DemonstrationError
from tests.cases import each_case

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


@given(st.permutations(TWENTY.items), st.integers(0, 2**31 - 1))
def test_as_many_as_a_set_holds_are_the_set_in_their_order(items: list[Demonstration], seed: int) -> None:
    fifteen = Demonstrations(items=tuple(items[:15]))
    assert demonstration_sets(fifteen, seed) == (fifteen,) * 3


def lists(folder: Path, sets: object) -> str:
    path = folder / "sets.json"
    path.write_text(sets if isinstance(sets, str) else json.dumps(sets))
    return str(path)


def test_a_listed_set_is_its_ids_in_their_order(tmp_path: Path) -> None:
    path = lists(tmp_path, [["q3", "q1"], ["q19", "q0", "q7"]])
    assert ids((listed_set(TWENTY, path, 1), listed_set(TWENTY, path, 2))) == [["q3", "q1"], ["q19", "q0", "q7"]]


@each_case(
    ("sets", "number", "said"),
    [
        ([["q1"], ["q2", "q99"]], 2, "set 2 of .*sets.json has the id 'q99', and no demonstration has it"),
        ([["q1"]], 2, "there is no set 2 in .*sets.json, which has 1"),
        ([["q1"], ["q2", "q3", "q2"]], 1, "sets.json: set 2 has the id 'q2' twice"),
        ([[]], 1, "sets.json isn't a JSON list of lists of ids"),
        ([], 1, "sets.json isn't a JSON list of lists of ids"),
        ({"1": ["q1"]}, 1, "sets.json isn't a JSON list of lists of ids"),
        ("[[", 1, "sets.json isn't a JSON list of lists of ids"),
    ],
)
def test_lists_that_can_not_be_used_are_refused_by_name(tmp_path: Path, sets: object, number: int, said: str) -> None:
    with pytest.raises(DemonstrationError, match=said):
        listed_set(TWENTY, lists(tmp_path, sets), number)


def test_a_file_of_lists_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DemonstrationError, match=r"none.json can't be read"):
        listed_set(TWENTY, str(tmp_path / "none.json"), 1)


def test_demonstrations_of_ones_own_have_no_released_sets() -> None:
    with pytest.raises(DemonstrationError, match="hotpotqa, 2wikimultihopqa, musique, iirc"):
        listed_set(TWENTY, "released", 1)


@needs_released
@pytest.mark.parametrize(
    ("dataset", "begins"),
    [
        ("hotpotqa", ["5abb14bd5542992ccd8e7f07", "5a90620755429933b8a20508", "5a89d58755429946c8d6e9d9"]),
        (
            "2wikimultihopqa",
            [
                "228546780bdd11eba7f7acde48001122",
                "c6805b2908a911ebbd80ac1f6bf848b6",
                "028eaef60bdb11eba7f7acde48001122",
            ],
        ),
        ("iirc", ["q_10344", "q_9499", "q_10344"]),
    ],
)
def test_the_released_sets_are_fifteen_of_the_released_demonstrations_in_the_authors_order(
    dataset: str, begins: list[str]
) -> None:
    for path in (RELEASED / dataset).glob("*.txt"):
        sets = ids(tuple(listed_set(read_demonstrations(path), "released", number) for number in (1, 2, 3)))
        assert [len(set(one)) for one in sets] == [15, 15, 15]
        assert [one[0] for one in sets] == begins
        with pytest.raises(DemonstrationError, match="no set 4"):
            listed_set(read_demonstrations(path), "released", 4)


@needs_released
@pytest.mark.parametrize("dataset", ["hotpotqa", "2wikimultihopqa", "iirc"])
def test_all_released_forms_of_a_dataset_give_the_same_sets(dataset: str) -> None:
    drawn = {
        str(ids(demonstration_sets(read_demonstrations(path), 7))) for path in (RELEASED / dataset).glob("gold_*.txt")
    }
    assert len(drawn) == 1
