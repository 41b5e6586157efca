"""Drawing questions by a seed: the paper takes 100 for development and 500 others for the test (IRCoT, section 4.1)."""

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
    """Development and test questions, none in both. DatasetError where there are too few.

    The draw depends on the seed and the questions' ids alone: however a file is ordered, it gives the same questions in
    the same order, which is that of the draw. (The authors' draw depends on their files' order and isn't repeated.)
    """
    return _drawn(questions, lambda question: question.id, development, test, seed)


def sample_file(dataset: str, path: Path, development: int, test: int, seed: int) -> tuple[bytes, bytes]:
    """The same draw as the contents of two files of the same format, the records as they stand.

    An IIRC question comes with its passage, without the passage's other questions.
    """
    records = list(read_records(dataset, path, _any_paragraph))
    first, second = _drawn(records, lambda record: record.annotated.question.id, development, test, seed)
    return _content(dataset, path, first), _content(dataset, path, second)


def suffix(dataset: str, path: Path) -> str:
    """What the name of a file that is drawn from this one ends in."""
    if dataset == "infotabs":
        return ".tsv"
    return ".json" if is_list(path, DatasetError) else ".jsonl"


def shuffled(items: Iterable[T], key: Callable[[T], str], seed: int) -> list[T]:
    """The items in an order that depends on nothing but their keys and the seed; equal keys stay in order."""
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
    """A draw needs no paragraphs, so any will do for those given by id."""
    return {id_: Paragraph(id=id_, title="", text="") for id_ in ids}
