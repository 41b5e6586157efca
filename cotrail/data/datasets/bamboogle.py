"""Bamboogle's table (Press et al. 2023): 125 questions of two steps, without ids.

It is published as a spreadsheet, whose columns are `Question`, `Answer` and in some copies `Answer 2`.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.core.questions import Question
from cotrail.data.datasets import flashrag
from cotrail.data.datasets.infotabs import records, written
from cotrail.data.datasets.spec import (
    AnnotatedQuestion,
    DatasetSpec,
    FileFormat,
    ParagraphLookup,
    QuestionForm,
    QuestionRecord,
    Scoring,
    accepted_answers,
    id_of,
)


class BamboogleQuestion(Struct, frozen=True):
    """A question as published; other: a second form of the answer."""

    question: str = msgspec.field(name="Question")
    answer: str = msgspec.field(name="Answer")
    other: str | None = msgspec.field(name="Answer 2", default=None)


def read(path: Path, _lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    """Read the questions of a file; an id is the SHA-256 of the question."""
    for place, raw, row in records(path, BamboogleQuestion):
        question = Question(
            id=id_of(row.question.strip()),
            text=row.question.strip(),
            answers=accepted_answers((row.answer, row.other or "")),
        )
        yield QuestionRecord(place=place, raw=raw, annotated=AnnotatedQuestion(question=question))


_KEYS = frozenset({"Question", "Answer"})
_OTHERS = frozenset({"wiki_links"})
"""What FRAMES' records have too."""

SPEC = DatasetSpec(
    name="bamboogle",
    title="Bamboogle",
    files=f"the published spreadsheet as CSV, TSV or JSON, {flashrag.FILES}",
    source="https://github.com/ofirpress/self-ask",
    asks="two-step questions that a search engine doesn't answer at once",
    metric="exact match and F1, as SQuAD's script",
    forms=(
        QuestionForm(format=FileFormat("Bamboogle's questions", False, _KEYS, _OTHERS), read=read, written=written),
        QuestionForm(format=FileFormat("Bamboogle's questions", True, _KEYS, _OTHERS), read=read),
        flashrag.form(),
    ),
    scoring=Scoring("squad"),
)
