"""Judging sentences: which are facts, what marks add up to, and annotation files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.cli.commands.annotate import annotator_name
from cotrail.cli.commands.errors import read_rows, write_rows
from cotrail.core.questions import Paragraph
from cotrail.errors import InputError
from cotrail.evaluation.metrics.factual_errors import (
    AnnotatedChain,
    SentenceMark,
    facts,
    factual_errors,
    sample,
    sentences_of,
)
from cotrail.models.queries.annotations import Chain
from cotrail.services.results.annotations import SentenceRow, checked_marks, rows_of
from tests.cases import each_case

Filled = Callable[..., Path]

STATES = "So the answer is: Grayle."
INK = Paragraph(id="1", title="Ink", text="Stains.")
CHAIN = Chain(
    question_id="q1", question="Who?", sentences=("One did it.", "Two did it.", STATES), paragraphs=((), (INK,), (INK,))
)


def mark(position: int, verdict: str, annotator: str = "ann", question: str = "q") -> SentenceMark:
    return SentenceMark(question_id=question, position=position, annotator=annotator, is_true=verdict == "true")


def annotated(*marks: SentenceMark, sentences: int = 2) -> AnnotatedChain:
    chain = (*(f"Fact {number}." for number in range(sentences)), STATES)
    return AnnotatedChain(question_id="q", sentences=chain, marks=marks)


@each_case(
    ("sentences", "positions"),
    [
        (("A.", "B.", STATES), (0, 1)),
        (("A.", "B."), (0, 1)),
        ((STATES,), ()),
        ((), ()),
        (("A.", "So the answer is: X.", "B.", STATES), (0, 1, 2)),
        (("A.", STATES, "More of it."), (0,)),
    ],
)
def test_the_facts_are_the_sentences_before_the_final_one_that_states_the_answer(
    sentences: tuple[str, ...], positions: tuple[int, ...]
) -> None:
    assert facts(sentences) == positions


@each_case(
    ("chain", "sentences"),
    [
        (f"Ink stains. Paper is pulp. {STATES}", ("Ink stains.", "Paper is pulp.", STATES)),
        ("It is by J. R. R. Tolkien. He left.", ("It is by J. R. R. Tolkien.", "He left.")),
        ("No stop at the end", ("No stop at the end",)),
        (" One.\n\nTwo. ", ("One.", "Two.")),
        ("", ()),
        ("...", ("...",)),
    ],
)
def test_a_readers_chain_is_split_into_sentences(chain: str, sentences: tuple[str, ...]) -> None:
    assert sentences_of(chain) == sentences


@given(chain=st.text())
def test_no_word_is_lost_between_sentences(chain: str) -> None:
    assert "".join("".join(sentences_of(chain)).split()) == "".join(chain.split())


@each_case(
    ("marks", "errors"),
    [
        ((mark(0, "true"), mark(1, "true")), {"q": False}),
        ((mark(0, "true"), mark(1, "untrue")), {"q": True}),
        ((mark(1, "untrue"),), {"q": True}),
        ((mark(0, "true"),), {}),
        ((), {}),
    ],
)
def test_a_chain_has_a_factual_error_if_one_fact_is_untrue(
    marks: tuple[SentenceMark, ...], errors: dict[str, bool]
) -> None:
    assert factual_errors([annotated(*marks)]) == errors


@each_case(
    ("verdicts", "errors"),
    [
        (("true", "true", "untrue"), {"q": False}),
        (("true", "untrue", "untrue"), {"q": True}),
        (("true", "untrue"), {"q": True}),
        (("true", "true"), {"q": False}),
    ],
)
def test_the_majority_counts_and_a_tie_counts_as_untrue(verdicts: tuple[str, ...], errors: dict[str, bool]) -> None:
    marks = [mark(0, verdict, annotator=str(number)) for number, verdict in enumerate(verdicts)]
    assert factual_errors([annotated(*marks, sentences=1)]) == errors


def test_marks_of_different_people_complete_one_another() -> None:
    assert factual_errors([annotated(mark(0, "true", "ann"), mark(1, "true", "bob"))]) == {"q": False}


def test_a_chain_without_facts_is_not_judged() -> None:
    assert factual_errors([annotated(sentences=0)]) == {}


ids = st.lists(st.text(), unique=True)


@given(ids=ids, count=st.integers(1, 50), seed=st.integers())
def test_the_sample_depends_on_the_seed_and_on_the_ids_but_not_on_their_order(
    ids: list[str], count: int, seed: int
) -> None:
    drawn = sample(ids, count, seed)
    assert len(drawn) == min(count, len(ids))
    assert drawn <= set(ids)
    assert drawn == sample(reversed(ids), count, seed)
    assert drawn <= sample(ids, count + 1, seed)


def test_another_seed_draws_other_questions() -> None:
    questions = [f"q{number}" for number in range(100)]
    assert sample(questions, 40, 1) != sample(questions, 40, 2)
    assert sorted(sample(questions, 3, 1)) == ["q32", "q36", "q86"]


# Annotation files.


@pytest.fixture
def filled(tmp_path: Path) -> Filled:
    """An annotation file of the chain, its lines changed by number and key; a text replaces the line."""

    def filled(*changes: tuple[int, dict[str, Any] | str]) -> Path:
        path = tmp_path / "marks.jsonl"
        rows = [msgspec.to_builtins(line) for line in rows_of("run", [CHAIN], {})]
        written = [json.dumps(row) for row in rows]
        for number, change in changes:
            written[number] = change if isinstance(change, str) else json.dumps(rows[number] | change)
        path.write_text("\n".join(written))
        return path

    return filled


def marks_of(path: Path, known: set[str] = {"q1", "q2"}) -> list[SentenceMark]:  # noqa: B006 - never changed
    return checked_marks("run", "ann", read_rows(path, SentenceRow), known, {"q1": CHAIN})


def test_a_file_has_a_line_a_fact_with_the_paragraphs_that_were_there() -> None:
    known = SentenceMark(question_id="q1", position=1, annotator="ann", is_true=False, note="Three did.")
    first, second = rows_of("run", [CHAIN], [known])
    assert (first.position, first.sentence, first.is_true, first.note, first.paragraphs) == (
        0,
        "One did it.",
        None,
        "",
        (),
    )
    assert (second.is_true, second.note) == (False, "Three did.")
    assert second.paragraphs == ({"title": "Ink", "text": "Stains."},)
    assert msgspec.to_builtins(first).keys() == {
        "run", "question_id", "question", "position", "sentence", "is_true", "note", "paragraphs"
    }  # fmt: skip


def test_what_is_filled_in_is_read_and_what_is_not_is_left_for_later(filled: Filled) -> None:
    assert marks_of(filled()) == []
    path = filled((1, {"is_true": False, "note": "Three did."}))
    assert marks_of(path) == [
        SentenceMark(question_id="q1", position=1, annotator="ann", is_true=False, note="Three did.")
    ]


@each_case(
    ("change", "complaint"),
    [
        ("{", r"marks.jsonl:2: .*truncated"),
        ("[]", r"marks.jsonl:2: this must be an object"),
        ('{"run": "run"}', r"marks.jsonl:2: .*the key `.*` is missing"),
        ({"is_true": "no"}, r"marks.jsonl:2: `is_true` must be true or false"),
        ({"true": False}, r"marks.jsonl:2: .*no key `true` \(did you mean is_true\?\)"),
        ({"run": "other"}, r"marks.jsonl:2: this is a mark of run 'other'"),
        ({"question_id": "q9"}, r"marks.jsonl:2: run run has no question 'q9'"),
        ({"question_id": "q2"}, r"marks.jsonl:2: question 'q2' has no finished chain"),
        ({"position": 2}, r"marks.jsonl:2: .*there is none at 2"),
        ({"position": -1}, r"marks.jsonl:2: .*there is none at -1"),
        ({"sentence": "Three did it."}, r"marks.jsonl:2: the sentence isn't the one that the run wrote"),
        ({"position": 0, "sentence": "One did it."}, r"marks.jsonl:2: the same sentence is in .*marks.jsonl:1"),
        ({"note": "\0"}, r"marks.jsonl:2: .*NUL"),
    ],
)
def test_a_line_that_is_not_of_the_run_is_refused_with_its_place(
    change: dict[str, Any] | str, complaint: str, filled: Filled
) -> None:
    with pytest.raises(InputError, match=complaint):
        marks_of(filled((0, {"is_true": True}), (1, change)))


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "marks.jsonl"
    write_rows(path, list(rows_of("run", [CHAIN], {})))
    assert len(read_rows(path, SentenceRow)) == 2
    with pytest.raises(InputError, match="may hold marks"):
        write_rows(path, [])
    assert len(read_rows(path, SentenceRow)) == 2


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "marks.jsonl"
    with pytest.raises(InputError, match=r"marks.jsonl can't be read"):
        read_rows(missing, SentenceRow)
    with pytest.raises(InputError, match=r"marks.jsonl can't be written"):
        write_rows(missing, [])


def test_who_marks_is_the_systems_user_or_who_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ann")
    assert annotator_name(None) == "ann"
    assert annotator_name(" bob ") == "bob"
    with pytest.raises(InputError, match="--annotator"):
        annotator_name(" ")
