import json
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.questions import Question
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_questions, sample_file, suffix
from cotrail.data.datasets.sampling import sample_questions
from cotrail.errors import CorpusError, DatasetError
from tests.cases import each_case

INPUTS = {
    "zsre": "Ink Museum [SEP] architect",
    "trex": "Ink Museum [SEP] located in",
    "fever": "Ink stains paper.",
    "eli5": "Why does ink stain?",
}
ANSWERS = {"zsre": "Ann Pen", "trex": "Inkville", "fever": "SUPPORTS", "eli5": "It is a dye. It soaks in."}

every_task = pytest.mark.parametrize("dataset", INPUTS)


def output(answer: str | None, *titles: str) -> dict[str, Any]:
    provenance = [
        {"wikipedia_id": "1", "title": title, "section": "Abstract.", "start_paragraph_id": 1, "end_paragraph_id": 1}
        for title in titles
    ]
    return ({} if answer is None else {"answer": answer, "meta": {"score": 5}}) | {"provenance": provenance}


def record(dataset: str, **changes: Any) -> dict[str, Any]:
    return {"id": "q1", "input": INPUTS[dataset], "output": [output(ANSWERS[dataset], "Ink")], "meta": {}} | changes


def written(folder: Path, *records: object) -> Path:
    path = folder / "dev-kilt.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records))
    return path


@pytest.mark.parametrize(
    ("dataset", "text", "answer", "kinds"),
    [
        ("zsre", "Subject: Ink Museum; relation: architect. What is the object?", "Ann Pen", {"relation": "architect"}),
        (
            "trex",
            "Subject: Ink Museum; relation: located in. What is the object?",
            "Inkville",
            {"relation": "located in"},
        ),
        ("fever", "Is the following claim true or false? Ink stains paper.", "true", {"label": "SUPPORTS"}),
        ("eli5", "Why does ink stain?", "It is a dye. It soaks in.", {}),
    ],
)
def test_a_record_is_asked_as_a_question(
    dataset: str, text: str, answer: str, kinds: dict[str, str], tmp_path: Path
) -> None:
    assert load_questions(dataset, written(tmp_path, record(dataset))) == (
        Question(id="q1", text=text, answers=(answer,), evidence=("Ink",), kinds=kinds),
    )


def test_every_answer_counts_once_and_every_page_of_the_provenance_is_evidence(tmp_path: Path) -> None:
    outputs = [
        output("Ann Pen", "Ink Museum", "Ann Pen"),
        output(" Ann Pen "),
        output(None, "Pens"),
        output("", "Ink Museum"),
        {"answer": "A. Pen"},
        {"answer": None, "provenance": [{"wikipedia_id": "1", "title": None}]},
    ]
    (question,) = load_questions("zsre", written(tmp_path, record("zsre", output=outputs)))
    assert question.answers == ("Ann Pen", "A. Pen")
    assert question.evidence == ("Ink Museum", "Ann Pen", "Pens")
    assert question.gold == ()


@every_task
def test_a_test_file_has_no_answers(dataset: str, tmp_path: Path) -> None:
    path = written(tmp_path, {"id": 1, "input": INPUTS[dataset]}, record(dataset, id="2", output=[]))
    assert [(each.id, each.answers, each.evidence) for each in load_questions(dataset, path)] == [
        ("1", (), ()),
        ("2", (), ()),
    ]


@each_case(
    ("asked", "given", "complaint"),
    [
        ("zsre", "fever", r"line 1: the input hasn't \[SEP\] .* it isn't of 'zsre'"),
        ("trex", "eli5", r"line 1: the input hasn't \[SEP\] .* it isn't of 'trex'"),
        ("fever", "trex", r"line 1: the input has \[SEP\] .* it isn't of 'fever'"),
        ("eli5", "zsre", r"line 1: the input has \[SEP\] .* it isn't of 'eli5'"),
        ("fever", "eli5", "line 1: the label is 'It is a dye.*'; correct it to SUPPORTS or REFUTES, or take"),
        ("hotpotqa", "eli5", "line 1: .*from KILT's records; name the dataset 'zsre' or 'trex' or 'fever' or 'eli5'"),
        ("jsonl", "zsre", "line 1: .*from KILT's records; name the dataset"),
    ],
)
def test_a_file_of_another_task_is_an_error(asked: str, given: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=complaint):
        load_questions(asked, written(tmp_path, record(given)))


@every_task
@pytest.mark.parametrize("changes", [{"id": " "}, {"input": " "}, {"input": " [SEP] author"}, {"input": "Ink [SEP] "}])
def test_an_empty_question_or_id_is_an_error(dataset: str, changes: dict[str, str], tmp_path: Path) -> None:
    complaint = r"line 1: the (id|question) is empty|line 1: the input has"
    with pytest.raises(DatasetError, match=complaint):
        load_questions(dataset, written(tmp_path, record(dataset, **changes)))


@every_task
@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"input": 3}, r"line 2: .*`input`"),
        ({"output": [{"answer": 3}]}, r"line 2: .*`output\[0\]\.answer`"),
        ({"output": "Ink"}, r"line 2: .*`output`"),
        ({"id": "q1"}, "line 2: .*'q1' too; give each its own"),
        ({"meta": "\0"}, "line 2: .*NUL"),
    ],
)
def test_a_malformed_record_is_an_error_that_names_its_line(
    dataset: str, changes: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(DatasetError, match=complaint):
        load_questions(dataset, written(tmp_path, record(dataset), record(dataset, **{"id": "q2"} | changes)))


@every_task
@pytest.mark.parametrize(
    ("content", "complaint"), [('{"id": "q1', "line 1: .*valid JSON"), ("\n", "holds no questions")]
)
def test_a_file_without_records_is_an_error(dataset: str, content: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "dev-kilt.jsonl"
    path.write_text(content)
    with pytest.raises(DatasetError, match=complaint):
        load_questions(dataset, path)


@every_task
def test_drawn_files_load_as_the_questions_that_are_drawn(dataset: str, tmp_path: Path) -> None:
    path = written(tmp_path, *(record(dataset, id=f"q{number}") for number in range(9)))
    expected, _ = sample_questions(load_questions(dataset, path), 4, 0, seed=1)
    drawn = tmp_path / f"drawn{suffix(dataset, path)}"
    drawn.write_bytes(sample_file(dataset, path, 4, 0, seed=1)[0])
    assert load_questions(dataset, drawn) == expected
    assert drawn.suffix == ".jsonl"


def test_records_are_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="KILT's records, which are no paragraphs"):
        list(read_corpus([written(tmp_path, record("eli5"))]))


@pytest.mark.parametrize(
    ("dataset", "changes", "told"),
    [
        ("trex", {"meta": {"template_questions": ["Who built it?"]}}, "template_questions.*'zsre'"),
        ("eli5", {"output": [output("REFUTES")]}, "label of FEVER.*'fever'"),
    ],
)
def test_a_file_of_another_task_is_told_by_its_fields(
    dataset: str, changes: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(DatasetError, match=told):
        load_questions(dataset, written(tmp_path, record(dataset, **changes)))


@every_task
def test_fields_of_other_tasks_may_be_there_and_empty(dataset: str, tmp_path: Path) -> None:
    empty = {"template_questions": [], "partial_evidence": [], "obj_surface": [], "mention": ""}
    plain = load_questions(dataset, written(tmp_path, record(dataset)))
    assert load_questions(dataset, written(tmp_path, record(dataset, meta=empty))) == plain


def test_template_questions_of_zsre_change_nothing(tmp_path: Path) -> None:
    plain = load_questions("zsre", written(tmp_path, record("zsre")))
    assert load_questions("zsre", written(tmp_path, record("zsre", meta={"template_questions": ["Who?"]}))) == plain
