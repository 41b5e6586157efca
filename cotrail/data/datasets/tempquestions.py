"""TempQuestions' file (`TempQuestions.json`, Jia et al. 2018): a list of 1,271 questions about time.

As in Rethinking with Retrieval (section 4.3), the 175 questions of type implicit with a single answer are read, without
the first six of them, which are the paper's prompt (table 6): 169 remain.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, entries
from cotrail.core.questions import Question, named
from cotrail.data.datasets import spec
from cotrail.errors import DatasetError

PROMPT_IDS = frozenset({"3", "7", "11", "16", "20", "21"})
"""Ids of the questions in the paper's prompt. Ids, not positions, so that they are right for a partial file too."""


class TempQuestion(Struct, frozen=True):
    """A question as published; `types`: `Explicit`, `Implicit` (once `Implicit:`), `Temp.Ans`, `Ordinal`."""

    id: int | str = msgspec.field(name="Id")
    question: str = msgspec.field(name="Question")
    answers: tuple[str, ...] = msgspec.field(name="Gold answer")
    types: tuple[str, ...] = msgspec.field(name="Type")
    signals: tuple[str, ...] = msgspec.field(name="Temporal signal", default=())


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the implicit questions with one answer, without the paper's prompt; `signal` is of kind e.g. `OVERLAP`."""
    for place, raw in entries(path, DatasetError):
        entry = decode(raw, TempQuestion, place, DatasetError)
        is_implicit = any(each.rstrip(":") == "Implicit" for each in entry.types)
        if is_implicit and len(entry.answers) == 1 and str(entry.id) not in PROMPT_IDS:
            question = Question(
                id=str(entry.id),
                text=entry.question,
                answers=entry.answers,
                kinds=named(signal=",".join(entry.signals)),
            )
            yield spec.QuestionRecord(place=place, raw=bytes(raw), annotated=spec.AnnotatedQuestion(question=question))


SPEC = spec.dataset(
    "tempquestions",
    spec.QuestionForm(
        format=spec.FileFormat("TempQuestions' questions", True, frozenset({"Id", "Question", "Gold answer", "Type"})),
        read=read,
    ),
)
