"""Seeded sampling of questions: the paper draws 100 for development and 500 others for testing (IRCoT, 4.1)."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from cotrail.common.json_files import is_list
from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import Question
from cotrail.data.datasets import infotabs
from cotrail.data.datasets.annotated import QuestionRecord
from cotrail.data.datasets.loading import read_records
from cotrail.errors import DatasetError

T = TypeVar("T")


def sample_questions(
    questions: Sequence[Question], development: int = 100, test: int = 500, seed: int = 0
) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
    """Draw disjoint development and test questions; DatasetError where there are too few.

    The draw depends on the seed and the questions' ids alone, so a reordered file gives the same questions in the same
    order, that of the draw. (The authors' draw depends on their files' order and can't be reproduced.)
    """
    return _drawn(questions, lambda question: question.id, development, test, seed)


def sample_file(dataset: str, path: Path, development: int, test: int, seed: int) -> tuple[bytes, bytes]:
    """Make the same draw from a file; returns the contents of two files of the same format, records unchanged.

    An IIRC question comes with its passage, without the passage's other questions.
    """
    records = list(read_records(dataset, path, _any_paragraph))
    first, second = _drawn(records, lambda record: record.annotated.question.id, development, test, seed)
    return _content(dataset, path, first), _content(dataset, path, second)


def suffix(dataset: str, path: Path) -> str:
    """The suffix for files that are drawn from this one."""
    if dataset == "infotabs":
        return ".tsv"
    return ".json" if is_list(path, DatasetError) else ".jsonl"


def shuffled(items: Iterable[T], key: Callable[[T], str], seed: int) -> list[T]:
    """Shuffle the items into an order that depends on their keys and the seed alone; the sort is stable.

    Sorting by hash instead of `random.shuffle` makes the relative order of two items independent of all others.
    """
    return sorted(items, key=lambda item: hashlib.sha256(f"{seed}\0{key(item)}".encode()).digest())


def _drawn(
    items: Sequence[T], key: Callable[[T], str], development: int, test: int, seed: int
) -> tuple[tuple[T, ...], tuple[T, ...]]:
    if development + test > len(items):
        raise DatasetError(
            f"{development} development and {test} test questions are {development + test}, but there are only "
            f"{len(items)}; draw fewer"
        )
    order = shuffled(items, key, seed)
    return tuple(order[:development]), tuple(order[development : development + test])


def _content(dataset: str, path: Path, records: Iterable[QuestionRecord]) -> bytes:
    stripped = [record.raw.strip() for record in records]
    if is_list(path, DatasetError):
        return b"[" + b",\n".join(stripped) + b"]\n"
    head = [infotabs.header(path)] if dataset == "infotabs" else []
    return b"".join(raw + b"\n" for raw in (*head, *stripped))


def _any_paragraph(ids: Sequence[str]) -> dict[str, Paragraph]:
    """Placeholders for gold paragraphs given by id: a draw doesn't need the corpus."""
    return {id_: Paragraph(id=id_, title="", text="") for id_ in ids}
