"""Natural Questions' open form (`NQ-open.dev.jsonl`, Lee et al. 2019): a question a line, without an id."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.core.questions import Question
from cotrail.data.datasets import flashrag, spec
from cotrail.errors import DatasetError


class OpenQuestion(Struct, frozen=True):
    """A question as published."""

    question: str
    answer: tuple[str, ...] = ()


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file, equal lines once; an id is the SHA-256 of the question and its answers."""
    seen = set()
    for place, raw in records(path, DatasetError):
        line = decode(raw, OpenQuestion, place, DatasetError)
        if line in seen:
            continue
        seen.add(line)
        question = Question(id=spec.id_of(line.question, *line.answer), text=line.question, answers=line.answer)
        yield spec.QuestionRecord(place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


SPEC = spec.dataset(
    "nq",
    spec.QuestionForm(
        format=spec.FileFormat(
            "Natural Questions' open questions", False, frozenset({"question", "answer"}), frozenset({"id", "_id"})
        ),
        read=read,
    ),
    flashrag.form(),
)
