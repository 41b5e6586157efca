import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.questions import Question
from cotrail.data.datasets.loading import load_questions, sample_file, suffix
from cotrail.data.datasets.sampling import sample_questions, shuffled
from cotrail.errors import DatasetError
from tests.cases import each_case
from tests.unit.test_datasets import ID, LISTS, RECORDS, TEXT, processed

QUESTIONS = [Question(id=f"q{number}", text="What?") for number in range(40)]


@given(st.permutations(QUESTIONS), st.integers(0, 20), st.integers(0, 20), st.integers(0, 2**31))
def test_a_draw_depends_on_ids_and_seed_alone(order: list[Question], development: int, test: int, seed: int) -> None:
    drawn = sample_questions(order, development, test, seed)
    assert drawn == sample_questions(QUESTIONS, development, test, seed)
    assert [len(part) for part in drawn] == [development, test]
    assert len({question.id for part in drawn for question in part}) == development + test


@given(st.integers(0, 2**31), st.integers(0, 20), st.integers(0, 20))
def test_a_smaller_draw_is_the_beginning_of_a_larger_one(seed: int, smaller: int, more: int) -> None:
    small, large = (sample_questions(QUESTIONS, size, 0, seed)[0] for size in (smaller, smaller + more))
    assert large[:smaller] == small


def test_another_seed_draws_other_questions() -> None:
    drawn = {sample_questions(QUESTIONS, 10, 10, seed) for seed in range(20)}
    assert len(drawn) == 20


def test_every_question_is_drawn_about_as_often() -> None:
    draws = [question.id for seed in range(400) for question in sample_questions(QUESTIONS, 10, 0, seed)[0]]
    assert all(60 <= draws.count(question.id) <= 140 for question in QUESTIONS)


def test_a_draw_stays_what_it_is() -> None:
    first, second = sample_questions(QUESTIONS, 3, 3, seed=7)
    assert [question.id for question in first] == ["q26", "q2", "q6"]
    assert [question.id for question in second] == ["q38", "q31", "q1"]


@each_case(("development", "test"), [(41, 0), (0, 41), (20, 21)])
def test_too_few_questions_are_an_error(development: int, test: int) -> None:
    with pytest.raises(DatasetError, match="there are only 40; draw fewer"):
        sample_questions(QUESTIONS, development, test)


def test_shuffling_keeps_the_order_of_equal_keys() -> None:
    items = [(key, number) for number in range(4) for key in "ab"]
    orders = {tuple(shuffled(items, lambda item: item[0], seed)) for seed in range(10)}
    of_a, of_b = ([item for item in items if item[0] == key] for key in "ab")
    assert orders == {(*of_a, *of_b), (*of_b, *of_a)}


def record(dataset: str, number: int) -> dict[str, Any]:
    return RECORDS[dataset](**{ID[dataset]: f"q{number}", TEXT[dataset]: f"What is {number}?"})


@each_case("dataset", RECORDS)
def test_drawn_files_load_as_the_questions_that_are_drawn(dataset: str, tmp_path: Path) -> None:
    records = [record(dataset, number) for number in range(12)]
    path, drawn = tmp_path / "all", tmp_path / "drawn"
    path.write_text(json.dumps(records) if dataset in LISTS else "\n".join(map(json.dumps, records)))
    expected = sample_questions(load_questions(dataset, path), 3, 4, seed=1)
    for content, questions in zip(sample_file(dataset, path, 3, 4, seed=1), expected, strict=True):
        drawn.write_bytes(content)
        assert load_questions(dataset, drawn) == questions


def test_processed_questions_are_drawn_as_lines_whatever_form_their_dataset_has(tmp_path: Path) -> None:
    path, drawn = tmp_path / "dev.jsonl", tmp_path / "drawn"
    path.write_text("\n".join(json.dumps(processed(question_id=f"q{number}")) for number in range(9)))
    assert suffix("hotpotqa", path) == ".jsonl"
    drawn.write_bytes(sample_file("hotpotqa", path, 4, 0, seed=1)[0])
    assert load_questions("hotpotqa", drawn) == sample_questions(load_questions("hotpotqa", path), 4, 0, seed=1)[0]


def as_lines(records: list[str]) -> str:
    return "\n".join(records)


def as_list(records: list[str]) -> str:
    return f"[{', '.join(records)}]"


@pytest.mark.parametrize(("dataset", "joined"), [("musique", as_lines), ("hotpotqa", as_list)])
def test_records_are_copied_byte_for_byte(dataset: str, joined: Callable[[list[str]], str], tmp_path: Path) -> None:
    odd = {number: json.dumps(record(dataset, number) | {"é": 1.50}, separators=(" ,", " : ")) for number in range(9)}
    path = tmp_path / "all"
    path.write_text(joined(list(odd.values())))
    for content in sample_file(dataset, path, 4, 5, seed=3):
        found = [raw for raw in odd.values() if raw.encode() in content]
        assert len(found) in (4, 5)
        assert len(content) <= sum(len(raw) + 2 for raw in found) + 2


def test_an_iirc_question_is_copied_with_its_passage_and_no_other_question(tmp_path: Path) -> None:
    passage = record("iirc", 0)
    passage["questions"] += [record("iirc", number)["questions"][0] for number in range(1, 5)]
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([passage], indent=1))
    (content, _) = sample_file("iirc", path, 2, 3, seed=random.Random(1).randrange(100))
    copied = msgspec.json.decode(content)
    assert [len(each["questions"]) for each in copied] == [1, 1]
    assert all({**each, "questions": passage["questions"]} == passage for each in copied)
    assert all(each["questions"][0] in passage["questions"] for each in copied)


def test_paragraphs_given_by_id_need_no_corpus_for_a_draw(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"id": "q1", "question": "What?", "gold": ["p1"]}\n')
    assert sample_file("jsonl", path, 1, 0, seed=0) == (path.read_bytes(), b"")
