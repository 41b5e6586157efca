"""Natural Questions' open form (`NQ-open.dev.jsonl`, Lee et al. 2019): a question a line, without an id."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.core.questions import Question
from cotrail.data.datasets import flashrag
from cotrail.data.datasets.spec import (
    AnnotatedQuestion,
    DatasetSpec,
    FileFormat,
    ParagraphLookup,
    QuestionForm,
    QuestionRecord,
    Scoring,
    id_of,
)
from cotrail.errors import DatasetError


class OpenQuestion(Struct, frozen=True):
    """A question as published."""

    question: str
    answer: tuple[str, ...] = ()


def read(path: Path, _lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    """Read the questions of a file, equal lines once; an id is the SHA-256 of the question and its answers."""
    seen = set()
    for place, raw in records(path, DatasetError):
        line = decode(raw, OpenQuestion, place, DatasetError)
        if line in seen:
            continue
        seen.add(line)
        question = Question(id=id_of(line.question, *line.answer), text=line.question, answers=line.answer)
        yield QuestionRecord(place=place, raw=raw, annotated=AnnotatedQuestion(question=question))


SPEC = DatasetSpec(
    name="nq",
    title="Natural Questions",
    files=f"NQ-open.*.jsonl, {flashrag.FILES}",
    source="https://github.com/google-research-datasets/natural-questions/tree/master/nq_open",
    asks="what people asked a search engine",
    metric="exact match and F1, as SQuAD's script",
    forms=(
        QuestionForm(
            format=FileFormat(
                "Natural Questions' open questions", False, frozenset({"question", "answer"}), frozenset({"id", "_id"})
            ),
            read=read,
        ),
        flashrag.form(),
    ),
    scoring=Scoring("squad"),
)
