"""Bamboogle's table (Press et al. 2023): 125 questions of two steps, without ids.

It is published as a spreadsheet, whose columns are `Question`, `Answer` and in some copies `Answer 2`.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.core.questions import Question
from cotrail.data.datasets import flashrag, spec
from cotrail.data.datasets.infotabs import records, written


class BamboogleQuestion(Struct, frozen=True):
    """A question as published; other: a second form of the answer."""

    question: str = msgspec.field(name="Question")
    answer: str = msgspec.field(name="Answer")
    other: str | None = msgspec.field(name="Answer 2", default=None)


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file; an id is the SHA-256 of the question."""
    for place, raw, row in records(path, BamboogleQuestion):
        question = Question(
            id=spec.id_of(row.question.strip()),
            text=row.question.strip(),
            answers=spec.accepted_answers((row.answer, row.other or "")),
        )
        yield spec.QuestionRecord(place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


_KEYS = frozenset({"Question", "Answer"})
_OTHERS = frozenset({"wiki_links"})
"""What FRAMES' records have too."""

SPEC = spec.dataset(
    "bamboogle",
    spec.QuestionForm(
        format=spec.FileFormat("Bamboogle's questions", False, _KEYS, _OTHERS), read=read, written=written
    ),
    spec.QuestionForm(format=spec.FileFormat("Bamboogle's questions", True, _KEYS, _OTHERS), read=read),
    flashrag.form(),
)
