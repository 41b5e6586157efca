"""PopQA's table (`popQA.tsv`, Mallen et al. 2023): questions made of facts of Wikidata, popular and not."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode
from cotrail.core.questions import Question, named
from cotrail.data.datasets import flashrag, spec
from cotrail.data.datasets.infotabs import records, written
from cotrail.errors import DatasetError


class PopQuestion(Struct, frozen=True):
    """A question as published; possible_answers: a JSON list in a string. prop: the relation that is asked for."""

    id: int | str
    question: str
    possible_answers: str
    prop: str = ""


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file."""
    for place, raw, row in records(path, PopQuestion):
        answers = decode(row.possible_answers.encode(), tuple[str, ...], f"{place}, possible_answers", DatasetError)
        question = Question(
            id=str(row.id),
            text=row.question.strip(),
            answers=spec.accepted_answers(answers),
            kinds=named(relation=row.prop),
        )
        yield spec.QuestionRecord(place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


SPEC = spec.dataset(
    "popqa",
    spec.QuestionForm(
        format=spec.FileFormat("PopQA's questions", False, frozenset({"id", "question", "possible_answers"})),
        read=read,
        written=written,
    ),
    flashrag.form(relation="prop"),
)
