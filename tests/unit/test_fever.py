from collections import Counter

import pytest

from cotrail.core.questions import Question
from cotrail.data.datasets.kilt import title_of
from cotrail.data.datasets.loading import load_questions
from cotrail.errors import DatasetError
from tests.cases import each_case
from tests.unit.test_datasets import DATA, Write, fever, needs_data, write

__all__ = ["write"]

ASKED = "Is the following claim true or false, or is there not enough info?"


def test_a_claim_is_asked_for_its_label_and_its_evidence_is_the_titles_of_pages(write: Write) -> None:
    assert load_questions("fever", write("fever", fever(id=1))) == (
        Question(
            id="1",
            text=f"{ASKED} Ink stains paper.",
            answers=("true",),
            evidence=("Ink (dye)", "Paper"),
            kinds={"label": "SUPPORTS"},
        ),
    )


@pytest.mark.parametrize(
    ("label", "answer"), [("SUPPORTS", "true"), ("REFUTES", "false"), ("NOT ENOUGH INFO", "not enough info")]
)
def test_an_answer_stands_for_a_label(label: str, answer: str, write: Write) -> None:
    (question,) = load_questions("fever", write("fever", fever(label=label, evidence=[[[1, None, None, None]]])))
    assert (question.answers, question.evidence) == ((answer,), ())


def test_a_test_file_has_claims_alone(write: Write) -> None:
    (question,) = load_questions("fever", write("fever", {"id": 1, "claim": " Ink stains. "}))
    assert question == Question(id="1", text=f"{ASKED} Ink stains.")


def test_an_unknown_label_is_an_error_that_names_its_line(write: Write) -> None:
    complaint = "line 2: the label is 'supports'; correct it to SUPPORTS or REFUTES or NOT ENOUGH INFO, or take"
    with pytest.raises(DatasetError, match=complaint):
        load_questions("fever", write("fever", fever(), fever(id="q2", label="supports")))


def test_malformed_evidence_is_an_error_that_names_its_line(write: Write) -> None:
    with pytest.raises(DatasetError, match=r"line 1: .*`evidence"):
        load_questions("fever", write("fever", fever(evidence=[["Ink", 0]])))


@each_case(
    ("escaped", "title"),
    [
        ("Ink_-LRB-dye-RRB-", "Ink (dye)"),
        ("Ink-COLON-_A_-LSB-short-RSB-_History", "Ink: A [short] History"),
        ("Pen-and-ink", "Pen-and-ink"),
    ],
)
def test_the_title_of_a_page_is_as_wikipedia_writes_it(escaped: str, title: str) -> None:
    assert title_of(escaped) == title


@needs_data
def test_the_real_claims_are_read_whole() -> None:
    questions = load_questions("fever", DATA / "fever" / "claims.jsonl")
    answers = Counter(question.answers for question in questions)
    assert answers == {("true",): 99, ("false",): 115, ("not enough info",): 86}
    titles = {title for question in questions for title in question.evidence}
    assert "Soul Food (film)" in titles
    assert not any("_" in str(title) or "RB-" in str(title) for title in titles)
    assert all(bool(question.evidence) == (question.answers != ("not enough info",)) for question in questions)
