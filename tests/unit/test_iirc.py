import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rapidfuzz import fuzz

from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.data.datasets.loading import form_of, load_annotated, load_questions
from cotrail.evaluation.metrics.answer_scores import published_spans
from cotrail.evaluation.metrics.corpus_coverage import coverage, located
from tests.cases import each_case
from tests.unit.test_datasets import processed

PAGES = {
    "oda bell": [
        "Oda Bell was born in Ysborg, where her father kept the ferry, and she learned the trade before she read.",
        "In later years Oda Bell wrote down what the ferrymen had told her about the river and its many floods.",
    ],
    "ysborg": ["Ysborg is a town on the lower Ven with a ferry, a mill and some nine hundred people in winter."],
}
"""A corpus as it is built from IIRC's articles, by the articles' titles."""


def of_no_ids(_: Sequence[str]) -> dict[str, Paragraph]:
    return {}


def of_title(title: str) -> list[Paragraph]:
    return [Paragraph(id=f"{title}{n}", title=title, text=text) for n, text in enumerate(PAGES.get(title, []))]


def snippet(passage: str, text: str) -> dict[str, Any]:
    return {"passage": passage, "text": text, "indices": [0, len(text)]}


def asked(qid: str | None = "q_1", answer: dict[str, Any] | None = None, *context: dict[str, Any]) -> dict[str, Any]:
    question = {
        "question": "Where was the author of the river book born?",
        "answer": answer or span("Ysborg"),
        "context": list(context),
        "question_links": [],
    }
    return question if qid is None else question | {"qid": qid}


def span(*texts: str) -> dict[str, Any]:
    spans = [{"text": text, "passage": "Oda Bell", "type": "answer", "start": 0, "end": 1} for text in texts]
    return {"type": "span", "answer_spans": spans}


def value(number: str, unit: str) -> dict[str, Any]:
    return {"type": "value", "answer_value": number, "answer_unit": unit}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "dev.json"


def load(file: Path, *questions: dict[str, Any]) -> tuple[Question, ...]:
    passage = {
        "pid": "p_1",
        "title": " The River Book ",
        "text": "The River Book is by Oda Bell.\n",
        "links": [{"target": "Oda Bell", "indices": [21, 29]}],
        "questions": list(questions),
    }
    file.write_text(json.dumps([passage]))
    return load_questions("iirc", file)


def test_the_main_passage_is_pinned_and_snippets_of_other_pages_are_gold(file: Path) -> None:
    main, other = snippet("main", "The River Book is by Oda Bell."), snippet("Oda Bell ", " was born in Ysborg")
    own = snippet("The River Book", "It has nine chapters.")
    assert load(file, asked("q_1", None, main, other, other, own)) == (
        Question(
            id="q_1",
            text="Where was the author of the river book born?",
            answers=("Ysborg",),
            gold=(GoldParagraph(title="Oda Bell", text="was born in Ysborg"),),
            pinned=GoldParagraph(title="The River Book", text="The River Book is by Oda Bell."),
            kinds={"answer_type": "span"},
        ),
    )


@pytest.mark.parametrize(
    ("answer", "spans"),
    [
        (span(" Ysborg "), ("Ysborg",)),
        (span("Ysborg", "the [lower] Ven", 'the "mill"'), ("Ysborg", "the [lower] Ven", 'the "mill"')),
        (value(" 53 ", "years"), ("53",)),
        ({"type": "binary", "answer_value": "yes"}, ("yes",)),
    ],
)
def test_an_answer_is_its_spans_or_its_value_without_the_unit(
    answer: dict[str, Any], spans: tuple[str, ...], file: Path
) -> None:
    (question,) = load(file, asked("q_1", answer))
    assert [published_spans(each) for each in question.answers] == [spans]
    assert question.kinds == {"answer_type": answer["type"]}


@each_case("answer", [{"type": "none"}, {"type": "bad"}, span(), span(" "), value("", "years")])
def test_questions_without_an_answer_are_left_out(answer: dict[str, Any], file: Path) -> None:
    assert [question.id for question in load(file, asked("q_1", answer), asked("q_2"))] == ["q_2"]


def test_a_question_without_an_id_gets_one_that_does_not_depend_on_its_place(file: Path) -> None:
    (alone,) = load(file, asked(None))
    assert alone in load(file, asked("q_1"), asked(None))
    assert alone.id


def test_a_question_has_no_distractors(file: Path) -> None:
    load(file, asked())
    (annotated,) = load_annotated("iirc", file)
    assert annotated.distractors == ()


def test_gold_becomes_the_paragraph_of_the_page_that_the_snippet_is_from(file: Path) -> None:
    questions = load(
        file,
        asked("q_1", None, snippet("Oda Bell", "what the ferrymen had told her"), snippet("Ysborg", "is a town")),
        asked("q_2", None, snippet("Oda Bell", "born in Ysborg"), snippet("Oda Bell", "her father kept the ferry")),
    )
    first, second = located(questions, of_title, snippets=True)
    assert first.gold == (
        GoldParagraph(title="oda bell", text=PAGES["oda bell"][1]),
        GoldParagraph(title="ysborg", text=PAGES["ysborg"][0]),
    )
    assert second.gold == (GoldParagraph(title="oda bell", text=PAGES["oda bell"][0]),)
    assert coverage((first, second), of_title, of_no_ids).missing == ()


def test_the_most_alike_paragraph_of_a_page_stands_for_a_snippet_however_little_alike_it_is(file: Path) -> None:
    changed = snippet("Oda Bell", "She learned the ferrymen's trade by the river Ven, at a mill.")
    questions = load(file, asked("q_1", None, changed))
    ((gold,),) = (question.gold for question in located(questions, of_title, snippets=True))
    texts = PAGES["oda bell"]
    scores = [fuzz.partial_ratio(text, changed["text"]) for text in texts]
    assert max(scores) < 95
    assert gold == GoldParagraph(title="oda bell", text=texts[scores.index(max(scores))])


def test_iirc_s_own_files_have_snippets_and_processed_ones_paragraphs(file: Path, tmp_path: Path) -> None:
    load(file, asked("q_1"))
    other = tmp_path / "dev.jsonl"
    other.write_text(json.dumps(processed("iirc")))
    assert (form_of("iirc", file).snippets, form_of("iirc", other).snippets) == (True, False)


@pytest.mark.parametrize("lost", [snippet("Nine Mills", "is a town on the lower Ven"), snippet("Oda Bell", "")])
def test_what_is_not_found_stays_and_is_counted(lost: dict[str, Any], file: Path) -> None:
    questions = located(load(file, asked("q_1", None, lost, snippet("Ysborg", "is a town"))), of_title, snippets=True)
    found = coverage(questions, of_title, of_no_ids)
    assert found.gold == 2
    assert [(each.question, each.paragraph.title, each.paragraph.text) for each in found.missing] == [
        ("q_1", lost["passage"], lost["text"])
    ]


def test_snippets_are_not_taken_for_paragraphs_before_they_are_located(file: Path) -> None:
    questions = load(file, asked("q_1", None, snippet("Ysborg", "is a town")))
    assert len(coverage(questions, of_title, of_no_ids).missing) == 1
