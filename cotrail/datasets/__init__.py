"""Question files in their publishers' formats, one module a format."""

from collections.abc import Iterator
from pathlib import Path

from cotrail.datasets import hotpotqa, musique, plain
from cotrail.datasets.plain import Lookup
from cotrail.errors import DatasetError, UnknownNameError
from cotrail.questions import Question

DATASETS = ("hotpotqa", "musique", "jsonl")
"""What a question file can be; `jsonl` is cotrail's own form."""


def load_questions(dataset: str, path: Path, lookup: Lookup | None = None) -> tuple[Question, ...]:
    """The questions of a file in its order; DatasetError says where a file is wrong.

    lookup: resolves gold paragraphs that a `jsonl` file gives by id, e.g. `TantivyRetriever.paragraphs`.
    """
    questions: dict[str, Question] = {}
    for place, question in _read(dataset, path, lookup):
        if not question.id.strip() or not question.text.strip():
            raise DatasetError(f"{place}: the id or the question is empty; fill it in or take the record out")
        if question.id in questions:
            raise DatasetError(f"{place}: a question before has the id {question.id!r} too; give each its own")
        questions[question.id] = question
    if not questions:
        raise DatasetError(f"{path} holds no questions; check that it is the right file")
    return tuple(questions.values())


def _read(dataset: str, path: Path, lookup: Lookup | None) -> Iterator[tuple[str, Question]]:
    match dataset:
        case "hotpotqa":
            return hotpotqa.read(path)
        case "musique":
            return musique.read(path)
        case "jsonl":
            return plain.read(path, lookup)
    raise UnknownNameError(f"there is no dataset {dataset!r}; there are: {', '.join(DATASETS)}")
