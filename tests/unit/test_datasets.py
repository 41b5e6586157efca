import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.data.corpora.files import read_corpus
from cotrail.data.datasets.loading import load_annotated, load_questions
from cotrail.data.datasets.musique import hops
from cotrail.data.datasets.registry import DATASETS
from cotrail.errors import DatasetError, UnknownNameError
from cotrail.evaluation.metrics.supporting_paragraphs import content_key
from tests.cases import each_case
from tests.unit.scored import paragraph_recall

DATA = Path(__file__).parents[2].parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data isn't beside the repository")

Write = Callable[..., Path]

LISTS = ("hotpotqa", "2wikimultihopqa", "iirc", "strategyqa", "tempquestions")
"""The datasets whose own files are one JSON list; the files of the others are lines."""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes records in the form that the dataset has: a list or lines."""

    def write(dataset: str, *records: object) -> Path:
        path = tmp_path / "questions"
        as_lines = "".join(f"{json.dumps(record)}\n" for record in records)
        path.write_text(json.dumps(records) if dataset in LISTS else as_lines)
        return path

    return write


def hotpotqa(**changes: Any) -> dict[str, Any]:
    return {
        "_id": "q1",
        "question": "What stains paper?",
        "answer": "ink",
        "supporting_facts": [["Ink", 0], ["Ink", 1], ["Paper", 0]],
        "context": [["Pen", ["A pen."]], ["Ink", ["Ink stains.", " It dries."]], ["Paper", ["Pulp."]]],
        "type": "bridge",
        "level": "hard",
    } | changes


def wikimultihop(**changes: Any) -> dict[str, Any]:
    record = hotpotqa(type="compositional", evidences=[["Ink", "stains", "paper"]], answer_id="Q127418")
    del record["level"]
    return record | changes


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


def iirc(**changes: Any) -> dict[str, Any]:
    """A passage with one question; the changes are to the question."""
    context = [
        {"passage": "main", "text": "Ink stains.", "indices": [0, 11]},
        {"passage": "Ink", "text": "Ink is black.", "indices": [3, 16]},
    ]
    question = {
        "qid": "q1",
        "question": "What stains paper?",
        "answer": {"type": "span", "answer_spans": [{"text": "ink", "passage": "main", "indices": [0, 3]}]},
        "context": context,
        "question_links": ["Ink"],
    }
    links = [{"target": "Ink", "indices": [0, 3]}]
    return {"pid": "p1", "title": "Pens", "text": "Ink stains.", "links": links, "questions": [question | changes]}


PINNED = {"idx": 0, "title": "Pens", "paragraph_text": "On pens.", "is_supporting": True}


OWN: dict[str, dict[str, Any]] = {
    "hotpotqa": {"dataset": "hotpotqa", "type": "bridge", "level": "hard"},
    "2wikimultihopqa": {"reasoning_steps": ["Ink stains paper"]},
    "musique": {"reasoning_steps": ["Ink >>>> stains"]},
    "iirc": {"pinned_contexts": [PINNED], "valid_titles": ["Ink"]},
}
"""What the processed records of one dataset alone hold."""


def processed(dataset: str = "hotpotqa", **changes: Any) -> dict[str, Any]:
    contexts = [
        {"idx": 0, "title": "Pen", "paragraph_text": "A pen.", "is_supporting": False},
        {"idx": 1, "title": "Ink", "paragraph_text": "Ink stains.", "is_supporting": True},
    ]
    no_date = {"day": "", "month": "", "year": ""}
    return {
        "question_id": "q1",
        "question_text": "What stains paper?",
        "answers_objects": [{"number": "", "date": no_date, "spans": ["ink"]}],
        "contexts": contexts,
        **OWN[dataset],
        **changes,
    }


def strategyqa(**changes: Any) -> dict[str, Any]:
    return {
        "qid": "q1",
        "term": "Ink",
        "description": "What pens write with",
        "question": "Does ink stain paper?",
        "answer": True,
        "facts": ["Ink is a dye", "Paper takes dyes."],
        "decomposition": ["What is ink?", "Does paper take #1?"],
        "evidence": [[[["Ink-1"]], [["Paper-3", "Ink-1"], "operation"]], [[["Pen-and-ink-2"]], ["no_evidence"]]],
    } | changes


def tempquestions(**changes: Any) -> dict[str, Any]:
    return {
        "Id": "q1",
        "Question": "who made ink when paper was invented?",
        "Gold answer": ["the Chinese"],
        "Temporal signal": ["OVERLAP"],
        "Type": ["Implicit"],
        "Data source": "ComplexQuestions",
        "Question creation date": "2016-12-13 (COLING 2016)",
    } | changes


def fever(**changes: Any) -> dict[str, Any]:
    return {
        "id": "q1",
        "verifiable": "VERIFIABLE",
        "label": "SUPPORTS",
        "claim": "Ink stains paper.",
        "evidence": [[[1, 2, "Ink_-LRB-dye-RRB-", 0], [1, 3, "Paper", 4]], [[5, 6, "Ink_-LRB-dye-RRB-", 7]]],
    } | changes


def plain(**changes: Any) -> dict[str, Any]:
    return {"id": "q1", "question": "What stains paper?"} | changes


RECORDS: dict[str, Callable[..., dict[str, Any]]] = {
    "hotpotqa": hotpotqa,
    "2wikimultihopqa": wikimultihop,
    "musique": musique,
    "iirc": iirc,
    "strategyqa": strategyqa,
    "tempquestions": tempquestions,
    "fever": fever,
    "jsonl": plain,
}
"""The datasets whose files are JSON, without those that share KILT's form (test_kilt.py); see also test_infotabs.py."""

ID = {
    "hotpotqa": "_id",
    "2wikimultihopqa": "_id",
    "musique": "id",
    "iirc": "qid",
    "strategyqa": "qid",
    "tempquestions": "Id",
    "fever": "id",
    "jsonl": "id",
}
TEXT = dict.fromkeys(RECORDS, "question") | {"tempquestions": "Question", "fever": "claim"}
"""What the fields are called."""

every_dataset = each_case("dataset", RECORDS)


def test_a_hotpotqa_question_has_the_paragraphs_of_its_supporting_facts_as_gold(write: Write) -> None:
    assert load_questions("hotpotqa", write("hotpotqa", hotpotqa())) == (
        Question(
            id="q1",
            text="What stains paper?",
            answers=("ink",),
            gold=(
                GoldParagraph(title="Ink", text="Ink stains. It dries.", facts=("Ink stains.", "It dries.")),
                GoldParagraph(title="Paper", text="Pulp.", facts=("Pulp.",)),
            ),
            kinds={"type": "bridge", "level": "hard"},
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


@pytest.mark.parametrize(
    ("id_", "kinds"), [("2hop__12_34", {"hops": "2hop"}), ("3hop2__1_2_3", {"hops": "3hop2"}), ("q1", {})]
)
def test_the_kind_of_a_musique_question_is_how_its_id_begins(id_: str, kinds: dict[str, str], write: Write) -> None:
    (question,) = load_questions("musique", write("musique", musique(id=id_)))
    assert question.kinds == kinds


@each_case(
    ("kinds", "expected"),
    [
        ({"hops": "2hop"}, 2),
        ({"hops": "3hop2"}, 3),
        ({"level": "hard", "type": "4hop1"}, 4),
        ({}, None),
        ({"type": "bridge"}, None),
    ],
)
def test_the_kind_of_a_musique_question_tells_its_hops(kinds: dict[str, str], expected: int | None) -> None:
    assert hops(kinds) == expected


@needs_data
def test_the_hops_of_the_real_questions_are_those_of_their_decomposition() -> None:
    path = DATA / "musique" / "questions.jsonl"
    steps = [len(json.loads(line)["question_decomposition"]) for line in path.read_text().splitlines()]
    assert [hops(question.kinds) for question in load_questions("musique", path)] == steps


def test_a_2wikimultihopqa_question_is_read_like_hotpotqas(write: Write) -> None:
    (question,) = load_questions("2wikimultihopqa", write("2wikimultihopqa", wikimultihop()))
    (like,) = load_questions("hotpotqa", write("hotpotqa", hotpotqa(type="compositional", level="")))
    assert question == like


@pytest.mark.parametrize("answer_id", ["Q127418", "Q1", "", None])
def test_other_names_of_a_2wikimultihopqa_answer_are_answers_where_their_file_is_beside(
    answer_id: str | None, write: Write
) -> None:
    path = write("2wikimultihopqa", wikimultihop(answer_id=answer_id))
    names = [
        {"Q_id": "Q127418", "aliases": ["India ink", "ink"], "demonyms": ["inky"]},
        {"Q_id": "Q2", "aliases": ["earth"], "demonyms": []},
    ]
    (path.parent / "id_aliases.json").write_text("".join(f"{json.dumps(line)}\n" for line in names))
    (question,) = load_questions("2wikimultihopqa", path)
    assert question.answers == (("ink", "India ink", "inky") if answer_id == "Q127418" else ("ink",))


def test_a_broken_file_of_other_names_is_an_error(write: Write) -> None:
    path = write("2wikimultihopqa", wikimultihop())
    (path.parent / "id_aliases.json").write_text('{"Q_id": "Q1", "aliases": [], "demonyms": []}\n{"Q_id"')
    with pytest.raises(DatasetError, match=r"id_aliases\.json, line 2: .*valid JSON"):
        load_questions("2wikimultihopqa", path)


def test_a_2wikimultihopqa_test_file_has_neither_answers_nor_gold(write: Write) -> None:
    record = wikimultihop(answer="", answer_id="", supporting_facts=[], evidences=[])
    (question,) = load_questions("2wikimultihopqa", write("2wikimultihopqa", record))
    assert (question.answers, question.gold) == ((), ())


def answer(*spans: str, number: str = "", **date: str) -> dict[str, Any]:
    return {"number": number, "spans": list(spans), "date": {"day": "", "month": "", "year": ""} | date}


@each_case(
    ("objects", "answers"),
    [
        ([answer("ink")], ("ink",)),
        ([answer("ink", "India ink")], ('["ink","India ink"]',)),
        ([answer(number="7")], ("7",)),
        ([answer(day="3", month="May", year="1900")], ("3-May-1900",)),
        ([answer("a"), answer("b"), answer("b")], ("b", "a")),
        ([answer()], ()),
        ([], ()),
    ],
)
def test_answers_of_processed_files_are_spans_numbers_or_dates_the_most_common_first(
    objects: list[dict[str, Any]], answers: tuple[str, ...], write: Write
) -> None:
    (question,) = load_questions("hotpotqa", write("processed", processed(answers_objects=objects)))
    assert question.answers == answers


def test_a_processed_question_pins_its_passage_and_has_no_gold_of_that_page(write: Write) -> None:
    contexts = [
        {"idx": 0, "title": "Pens", "paragraph_text": "More on pens.", "is_supporting": True},
        {"idx": 1, "title": "Ink", "paragraph_text": "Ink stains.", "is_supporting": True},
        {"idx": 2, "title": "Ink", "paragraph_text": "Ink stains.", "is_supporting": True},
    ]
    (question,) = load_questions("iirc", write("processed", processed("iirc", contexts=contexts)))
    assert question.pinned == GoldParagraph(title="Pens", text="On pens.")
    assert question.gold == (GoldParagraph(title="Ink", text="Ink stains."),)


def test_two_pinned_passages_are_an_error(write: Write) -> None:
    with pytest.raises(DatasetError, match=r"line 1: .*more than one pinned"):
        load_questions("iirc", write("processed", processed("iirc", pinned_contexts=[PINNED, PINNED])))


@pytest.mark.parametrize(
    ("steps", "chain"),
    [
        ([{"paragraphs": [{"title": "Ink", "text_substring": "Ink"}], "cot_sent": "Ink stains."}], ("Ink stains.",)),
        (["Ink >>>> stains"], ()),
        ([], ()),
    ],
)
def test_a_chain_is_what_somebody_wrote_for_a_demonstration(
    steps: list[object], chain: tuple[str, ...], write: Write
) -> None:
    (annotated,) = load_annotated("hotpotqa", write("processed", processed(reasoning_steps=steps)))
    assert annotated.chain == chain


@pytest.mark.parametrize("dataset", ["hotpotqa", "2wikimultihopqa", "musique"])
def test_paragraphs_that_are_not_gold_are_distractors(dataset: str, write: Write) -> None:
    (annotated,) = load_annotated(dataset, write(dataset, RECORDS[dataset]()))
    assert annotated.distractors == (GoldParagraph(title="Pen", text="A pen."),)
    assert annotated.question == load_questions(dataset, write(dataset, RECORDS[dataset]()))[0]


def test_ones_own_questions_may_have_distractors_a_chain_a_pinned_passage_and_a_kind(write: Write) -> None:
    pinned = {"title": "Pens", "text": "On pens."}
    record = plain(gold=["ink"], distractors=["pen"], chain=["So it is ink."], pinned=pinned, kind="easy")
    (annotated,) = load_annotated("jsonl", write("jsonl", record), lookup)
    assert annotated.distractors == (GoldParagraph(title="PEN", text="About pen.", id="pen"),)
    assert annotated.chain == ("So it is ink.",)
    assert annotated.question.pinned == GoldParagraph(title="Pens", text="On pens.")
    assert annotated.question.kinds == {"type": "easy"}


def test_ones_own_questions_may_have_several_kinds_by_name(write: Write) -> None:
    kinds = {"domain": "law", "level": "hard"}
    (question,) = load_questions("jsonl", write("jsonl", plain(kinds=kinds)))
    assert question.kinds == kinds


@each_case(
    ("kinds", "complaint"),
    [
        ({"kind": "easy", "kinds": {"domain": "law"}}, "line 1: there are both kind and kinds"),
        ({"kinds": {"domain": " "}}, r"line 1: .* kinds is empty \('domain'\)"),
        ({"kinds": {"": "law"}}, "line 1: .* kinds is empty"),
        ({"kinds": {"hops": 2}}, r"line 1: .*`kinds\.hops` must be text in quotation marks, .* not 2"),
        ({"kinds": ["law"]}, r"line 1: .*`kinds`"),
    ],
)
def test_kinds_that_name_nothing_are_errors(kinds: dict[str, Any], complaint: str, write: Write) -> None:
    with pytest.raises(DatasetError, match=complaint):
        load_questions("jsonl", write("jsonl", plain(**kinds)))


@needs_data
def test_every_real_hotpotqa_question_has_a_type_and_a_level() -> None:
    questions = load_questions("hotpotqa", DATA / "hotpotqa" / "questions.json")
    assert Counter(question.kinds["type"] for question in questions) == {"bridge": 78, "comparison": 22}
    assert Counter(question.kinds["level"] for question in questions) == {"medium": 69, "easy": 16, "hard": 15}


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
    ink = GoldParagraph(title="INK", text="About ink.", id="ink")
    assert question.gold == (ink, GoldParagraph(title="Pen", text="A pen."))


def test_gold_that_the_corpus_lacks_is_an_error(write: Write) -> None:
    with pytest.raises(DatasetError, match='line 1: the corpus has no paragraph "nowhere"'):
        load_questions("jsonl", write("jsonl", plain(gold=["ink", "nowhere"])), lookup)


def test_gold_given_by_id_needs_a_corpus(write: Write) -> None:
    with pytest.raises(DatasetError, match="name the corpus"):
        load_questions("jsonl", write("jsonl", plain(gold=["ink"])))


def test_a_misspelt_field_of_ones_own_questions_is_an_error(write: Write) -> None:
    with pytest.raises(DatasetError, match=r"line 1: there is no key `anwsers` \(did you mean answers\?\), `godl`"):
        load_questions("jsonl", write("jsonl", plain(anwsers="ink", godl=[])))


@every_dataset
def test_two_questions_with_one_id_are_an_error(dataset: str, write: Write) -> None:
    make = RECORDS[dataset]
    with pytest.raises(DatasetError, match=r"questions, (line|entry) 2.*: .*'q1'"):
        load_questions(dataset, write(dataset, make(), make(**{TEXT[dataset]: "Another?"})))


@every_dataset
def test_a_missing_field_is_an_error_that_names_its_place(dataset: str, write: Write) -> None:
    make = RECORDS[dataset]
    broken = make(**{ID[dataset]: "q2"})
    del (broken["questions"][0] if dataset == "iirc" else broken)[TEXT[dataset]]
    with pytest.raises(DatasetError, match=rf"questions, (line|entry) 2: .*`{TEXT[dataset]}`"):
        load_questions(dataset, write(dataset, make(), broken))


@every_dataset
def test_an_id_that_is_too_long_for_the_store_is_an_error(dataset: str, write: Write) -> None:
    with pytest.raises(DatasetError, match="1: the id has 1,002 bytes, and at most 1,000 are taken"):
        load_questions(dataset, write(dataset, RECORDS[dataset](**{ID[dataset]: "é" * 501})))


@every_dataset
@pytest.mark.parametrize("names", [TEXT, ID])
def test_an_empty_question_or_id_is_an_error(dataset: str, names: dict[str, str], write: Write) -> None:
    with pytest.raises(DatasetError, match=r"1: the (id|question) is empty"):
        load_questions(dataset, write(dataset, RECORDS[dataset](**{names[dataset]: " \n"})))


@every_dataset
@pytest.mark.parametrize(("text", "complaint"), [("a\0b", "NUL"), ("a\ud800b and so on", "valid JSON")])
def test_text_that_can_not_be_stored_is_an_error(dataset: str, text: str, complaint: str, write: Write) -> None:
    with pytest.raises(DatasetError, match=complaint):
        load_questions(dataset, write(dataset, RECORDS[dataset](**{TEXT[dataset]: text})))


@each_case(
    ("dataset", "content"),
    [("hotpotqa", "[{"), ("hotpotqa", "nonsense"), ("musique", '{"id"'), ("jsonl", '{"id"'), ("jsonl", "nonsense")],
)
def test_a_file_that_is_not_json_is_an_error(dataset: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "questions"
    path.write_text(content)
    with pytest.raises(DatasetError, match=r"questions.* (valid JSON|begins with \"nonsense\")"):
        load_questions(dataset, path)


@each_case("asked", DATASETS)
@each_case("given", RECORDS)
def test_a_file_of_another_dataset_is_an_error_that_names_it(asked: str, given: str, write: Write) -> None:
    path = write(given, RECORDS[given]())
    own = asked == "jsonl" and TEXT[given].lower() == "question" and given != "iirc"  # that reads all with a question
    if own or asked == given or (asked, given) == ("strategyqa-facts", "strategyqa"):
        assert load_questions(asked, path)
        return
    with pytest.raises(DatasetError, match=rf"questions, (line|entry) 1: .* name the dataset '{given}'"):
        load_questions(asked, path)


@each_case(
    ("content", "what"),
    [
        (b'{"id": "1", "title": "Ink", "text": "Ink stains."}\n', "to hold paragraphs of a corpus"),
        (b'{"Q_id": "Q1", "aliases": [], "demonyms": []}\n', "to hold 2WikiMultihopQA's aliases"),
        (b"{" + b",".join(b'"page %d": "<p>text"' % number for number in range(50)) + b"}", "IIRC's articles"),
        (b"<!DOCTYPE html><title>Sign in</title>", "to be a web page"),
        (b"PK\x03\x04 and so on", "to be a zip archive"),
        (b"BZh91AY&SY and so on", "to be a bz2 archive"),
    ],
)
def test_a_file_that_holds_no_questions_is_an_error_that_says_what_it_is(
    content: bytes, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "questions"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=f"seems .*{what}"):
        load_questions("musique", path)


@each_case("dataset", LISTS)
def test_a_truncated_list_is_an_error_that_names_the_entry(dataset: str, write: Write) -> None:
    path = write(dataset, *(RECORDS[dataset](**{ID[dataset]: f"q{number}"}) for number in range(3)))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DatasetError, match=r"questions, entry 3: .*truncated"):
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


def test_an_unknown_dataset_is_an_error_that_lists_some(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"there are \d+, such as hotpotqa, 2wikimultihopqa, "):
        load_questions("zork", tmp_path)


# Processed files


@pytest.fixture
def official(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a dataset's own file with the question of `processed`, and 2WikiMultihopQA's names beside it."""

    def write(dataset: str) -> Path:
        path = tmp_path / f"official-{dataset}"
        record = RECORDS[dataset](**({"id": "2hop__1_2"} if dataset == "musique" else {}))
        path.write_text(json.dumps([record] if dataset in LISTS else record))
        names = {"Q_id": "Q127418", "aliases": ["India ink"], "demonyms": []}
        (tmp_path / "id_aliases.json").write_text(json.dumps(names))
        return path

    return write


@pytest.mark.parametrize(
    ("dataset", "answers", "kinds"),
    [
        ("hotpotqa", ("ink",), {"type": "bridge", "level": "hard"}),
        ("2wikimultihopqa", ("ink", "India ink"), {"type": "compositional"}),
        ("musique", ("ink", "the ink"), {"hops": "2hop"}),
        ("iirc", ("ink",), {"answer_type": "span"}),
    ],
)
def test_a_processed_question_has_the_answers_and_the_kinds_of_its_dataset_s_own_file(
    dataset: str, answers: tuple[str, ...], kinds: dict[str, str], write: Write, official: Callable[[str], Path]
) -> None:
    record = processed(dataset, **({"question_id": "2hop__1_2"} if dataset == "musique" else {}))
    (question,) = load_questions(dataset, write("processed", record), official=official(dataset))
    assert (question.answers, question.kinds) == (answers, kinds)
    assert question.gold == (GoldParagraph(title="Ink", text="Ink stains."),)


@pytest.mark.parametrize("dataset", ["hotpotqa", "iirc"])
def test_where_a_processed_file_has_all_that_is_scored_by_it_is_enough(dataset: str, write: Write) -> None:
    (question,) = load_questions(dataset, write("processed", processed(dataset)))
    assert question.answers == ("ink",)


@pytest.mark.parametrize(
    ("dataset", "file"), [("musique", r"musique_ans_v1\.0_dev\.jsonl"), ("2wikimultihopqa", "dev.json")]
)
def test_a_processed_file_that_lacks_answers_says_which_file_has_them(dataset: str, file: str, write: Write) -> None:
    with pytest.raises(DatasetError, match=f"{file}.* has them. Name that file with --official"):
        load_questions(dataset, write("processed", processed(dataset)))


def test_2wikimultihopqa_s_own_file_needs_its_aliases_beside_it(
    write: Write, official: Callable[[str], Path], tmp_path: Path
) -> None:
    own = official("2wikimultihopqa")
    (tmp_path / "id_aliases.json").unlink()
    with pytest.raises(DatasetError, match=r"id_aliases\.json isn't next to .*official-2wiki"):
        load_questions("2wikimultihopqa", write("processed", processed("2wikimultihopqa")), official=own)


def test_an_official_file_without_the_questions_is_an_error(write: Write, official: Callable[[str], Path]) -> None:
    path = write("processed", processed("musique"), processed("musique", question_id="q2"))
    with pytest.raises(DatasetError, match=r"2 of 2 questions aren't in .*-musique, 'q1' for one"):
        load_questions("musique", path, official=official("musique"))


def test_an_official_file_beside_another_one_is_an_error(write: Write, official: Callable[[str], Path]) -> None:
    with pytest.raises(DatasetError, match="is the dataset's own file already"):
        load_questions("hotpotqa", write("hotpotqa", hotpotqa()), official=official("hotpotqa"))


@each_case(
    ("given", "asked", "complaint"),
    [
        ("hotpotqa", "musique", "says that it is of 'hotpotqa', and not of 'musique'"),
        ("iirc", "musique", "pins a passage, as those of IIRC do, so it isn't of 'musique'"),
        ("musique", "iirc", "pins no passage, so it isn't of 'iirc'"),
        ("musique", "strategyqa", "name the dataset 'hotpotqa' or '2wikimultihopqa' or 'musique' or 'iirc'"),
        ("musique", "jsonl", "name the dataset 'hotpotqa' or '2wikimultihopqa' or 'musique' or 'iirc'"),
    ],
)
def test_a_processed_file_that_shows_itself_of_another_dataset_is_an_error(
    given: str, asked: str, complaint: str, write: Write
) -> None:
    with pytest.raises(DatasetError, match=f"line 1: this .*{complaint}"):
        load_annotated(asked, write("processed", processed(given)))


def test_processed_is_no_dataset(write: Write) -> None:
    with pytest.raises(UnknownNameError, match="name the dataset that the authors of IRCoT processed"):
        load_questions("ircot", write("processed", processed()))


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
    assert paragraph_recall(corpora, gold) == 1


@needs_data
def test_the_contexts_of_real_questions_are_the_corpus_made_from_them() -> None:
    folder = DATA / "hotpotqa"
    contexts, corpus = (list(read_corpus([folder / name])) for name in ("questions.json", "corpus.jsonl"))
    assert len(contexts) == len(corpus)
    keys = [{content_key(each.title, each.text) for each in paragraphs} for paragraphs in (contexts, corpus)]
    assert keys[0] == keys[1]
