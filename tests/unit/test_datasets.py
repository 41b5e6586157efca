import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cotrail.datasets import DATASETS, load_questions
from cotrail.errors import DatasetError, UnknownNameError
from cotrail.metrics.support import content_key, support_recall
from cotrail.paragraphs import Paragraph
from cotrail.questions import GoldParagraph, Question
from cotrail.retrieval.corpus import read_corpus

DATA = Path(__file__).parents[2].parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data isn't beside the repository")

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes records in the form that the dataset has: a list for HotpotQA, lines for the others."""

    def write(dataset: str, *records: object) -> Path:
        path = tmp_path / "questions"
        as_lines = "".join(f"{json.dumps(record)}\n" for record in records)
        path.write_text(json.dumps(records) if dataset == "hotpotqa" else as_lines)
        return path

    return write


def hotpotqa(**changes: Any) -> dict[str, Any]:
    return {
        "_id": "q1",
        "question": "What stains paper?",
        "answer": "ink",
        "supporting_facts": [["Ink", 0], ["Ink", 1], ["Paper", 0]],
        "context": [["Pen", ["A pen."]], ["Ink", ["Ink stains.", " It dries."]], ["Paper", ["Pulp."]]],
    } | changes


def musique(**changes: Any) -> dict[str, Any]:
    paragraphs = [
        {"idx": 0, "title": "Pen", "paragraph_text": "A pen.", "is_supporting": False},
        {"idx": 1, "title": "Ink", "paragraph_text": "Ink stains.", "is_supporting": True},
    ]
    return {
        "id": "q1",
        "question": "What stains paper?",
        "answer": "ink",
        "answer_aliases": ["the ink", "ink"],
        "paragraphs": paragraphs,
        "answerable": True,
    } | changes


def plain(**changes: Any) -> dict[str, Any]:
    return {"id": "q1", "question": "What stains paper?"} | changes


RECORDS: dict[str, Callable[..., dict[str, Any]]] = {"hotpotqa": hotpotqa, "musique": musique, "jsonl": plain}
ID = {"hotpotqa": "_id", "musique": "id", "jsonl": "id"}

every_dataset = pytest.mark.parametrize("dataset", DATASETS)


def test_a_hotpotqa_question_has_the_paragraphs_of_its_supporting_facts_as_gold(write: Write) -> None:
    assert load_questions("hotpotqa", write("hotpotqa", hotpotqa())) == (
        Question(
            id="q1",
            text="What stains paper?",
            answers=("ink",),
            gold=(
                GoldParagraph(title="Ink", text="Ink stains. It dries."),
                GoldParagraph(title="Paper", text="Pulp."),
            ),
        ),
    )


def test_a_hotpotqa_test_file_has_neither_answers_nor_gold(write: Write) -> None:
    record = hotpotqa()
    del record["answer"], record["supporting_facts"]
    (question,) = load_questions("hotpotqa", write("hotpotqa", record))
    assert (question.answers, question.gold) == ((), ())


def test_a_musique_question_has_its_aliases_as_answers(write: Write) -> None:
    assert load_questions("musique", write("musique", musique())) == (
        Question(
            id="q1",
            text="What stains paper?",
            answers=("ink", "the ink"),
            gold=(GoldParagraph(title="Ink", text="Ink stains."),),
        ),
    )


def test_musique_questions_without_an_answer_are_left_out(write: Write) -> None:
    path = write("musique", musique(), musique(answerable=False), musique(id="q2"))
    assert [question.id for question in load_questions("musique", path)] == ["q1", "q2"]


def test_answers_and_gold_of_ones_own_questions_may_be_left_out(write: Write) -> None:
    path = write("jsonl", plain(), plain(id="q2", answers=["ink", "Ink"], gold=[{"title": "Ink", "text": "Stains."}]))
    assert load_questions("jsonl", path) == (
        Question(id="q1", text="What stains paper?"),
        Question(
            id="q2",
            text="What stains paper?",
            answers=("ink", "Ink"),
            gold=(GoldParagraph(title="Ink", text="Stains."),),
        ),
    )


def lookup(ids: Sequence[str]) -> Mapping[str, Paragraph]:
    return {id_: Paragraph(id=id_, title=id_.upper(), text=f"About {id_}.") for id_ in ids if id_ != "nowhere"}


def test_gold_given_by_id_is_looked_up_in_the_corpus(write: Write) -> None:
    path = write("jsonl", plain(gold=["ink", {"title": "Pen", "text": "A pen."}]))
    (question,) = load_questions("jsonl", path, lookup)
    assert question.gold == (GoldParagraph(title="INK", text="About ink."), GoldParagraph(title="Pen", text="A pen."))


def test_gold_that_the_corpus_lacks_is_an_error(write: Write) -> None:
    with pytest.raises(DatasetError, match="line 1: the corpus has no paragraph nowhere"):
        load_questions("jsonl", write("jsonl", plain(gold=["ink", "nowhere"])), lookup)


def test_gold_given_by_id_needs_a_corpus(write: Write) -> None:
    with pytest.raises(DatasetError, match="name the corpus"):
        load_questions("jsonl", write("jsonl", plain(gold=["ink"])))


def test_a_misspelt_field_of_ones_own_questions_is_an_error(write: Write) -> None:
    with pytest.raises(DatasetError, match=r"line 1: .*`answer`"):
        load_questions("jsonl", write("jsonl", plain(answer="ink")))


@every_dataset
def test_two_questions_with_one_id_are_an_error(dataset: str, write: Write) -> None:
    make = RECORDS[dataset]
    with pytest.raises(DatasetError, match=r"questions, (line|entry) 2: .*'q1'"):
        load_questions(dataset, write(dataset, make(), make(question="Another?")))


@every_dataset
def test_a_missing_field_is_an_error_that_names_its_place(dataset: str, write: Write) -> None:
    make = RECORDS[dataset]
    broken = make(**{ID[dataset]: "q2"})
    del broken["question"]
    with pytest.raises(DatasetError, match=r"questions, (line|entry) 2: .*`question`"):
        load_questions(dataset, write(dataset, make(), broken))


@every_dataset
@pytest.mark.parametrize("change", [{"question": " \n"}, {"id": "", "_id": ""}])
def test_an_empty_question_or_id_is_an_error(dataset: str, change: dict[str, str], write: Write) -> None:
    fields = {name: value for name, value in change.items() if name in ("question", ID[dataset])}
    with pytest.raises(DatasetError, match="1: the id or the question is empty"):
        load_questions(dataset, write(dataset, RECORDS[dataset](**fields)))


@every_dataset
@pytest.mark.parametrize(("text", "complaint"), [("a\0b", "NUL"), ("a\ud800b and so on", "valid JSON")])
def test_text_that_can_not_be_stored_is_an_error(dataset: str, text: str, complaint: str, write: Write) -> None:
    with pytest.raises(DatasetError, match=complaint):
        load_questions(dataset, write(dataset, RECORDS[dataset](question=text)))


@pytest.mark.parametrize(
    ("dataset", "content"),
    [("hotpotqa", "[{"), ("hotpotqa", "nonsense"), ("musique", '{"id"'), ("jsonl", '{"id"'), ("jsonl", "nonsense")],
)
def test_a_file_that_is_not_json_is_an_error(dataset: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "questions"
    path.write_text(content)
    with pytest.raises(DatasetError, match=r"questions.* valid JSON"):
        load_questions(dataset, path)


@every_dataset
@pytest.mark.parametrize("content", ["", "\n"])
def test_a_file_without_questions_is_an_error(dataset: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "questions"
    path.write_text(content)
    with pytest.raises(DatasetError, match="holds no questions"):
        load_questions(dataset, path)


@every_dataset
def test_a_file_that_is_not_there_is_an_error(dataset: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="can't be read"):
        load_questions(dataset, tmp_path / "questions")


def test_an_unknown_dataset_is_an_error_that_lists_them(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="hotpotqa, musique, jsonl"):
        load_questions("squad", tmp_path)


@needs_data
@pytest.mark.parametrize(
    ("dataset", "file", "count"), [("hotpotqa", "questions.json", 100), ("musique", "questions.jsonl", 20)]
)
def test_every_gold_paragraph_of_the_real_questions_is_in_the_real_corpora(dataset: str, file: str, count: int) -> None:
    questions = load_questions(dataset, DATA / dataset / file)
    assert len(questions) == count
    assert all(question.answers and len(question.gold) >= 2 for question in questions)
    corpora = list(read_corpus([DATA / name / "corpus.jsonl" for name in ("hotpotqa", "musique", "2wikimultihopqa")]))
    assert len(corpora) == 9_002
    gold = [paragraph for question in questions for paragraph in question.gold]
    assert support_recall(corpora, gold) == 1


@needs_data
def test_the_contexts_of_real_questions_are_the_corpus_made_from_them() -> None:
    folder = DATA / "hotpotqa"
    contexts, corpus = (list(read_corpus([folder / name])) for name in ("questions.json", "corpus.jsonl"))
    assert len(contexts) == len(corpus)
    keys = [{content_key(each.title, each.text) for each in paragraphs} for paragraphs in (contexts, corpus)]
    assert keys[0] == keys[1]
