"""Question files in their publishers' formats, one module a format."""

from collections.abc import Iterator
from pathlib import Path

from cotrail.datasets import (
    hotpotqa,
    iirc,
    infotabs,
    musique,
    plain,
    processed,
    strategyqa,
    tempquestions,
    wikimultihop,
)
from cotrail.datasets.contexts import AnnotatedQuestion, Record
from cotrail.datasets.forms import form_of, seems
from cotrail.datasets.plain import Lookup
from cotrail.errors import DatasetError, UnknownNameError
from cotrail.questions import Question

DATASETS = (
    "hotpotqa",
    "2wikimultihopqa",
    "musique",
    "iirc",
    "strategyqa",
    "tempquestions",
    "infotabs",
    "ircot",
    "jsonl",
)
"""What a question file can be: the datasets' official files, the files that the authors of IRCoT processed (any of the
first four), and cotrail's own form."""

LONGEST_ID = 1000
"""How many bytes of UTF-8 a question's id may have: it is part of a key in the database, which holds about 2,700."""


def load_questions(dataset: str, path: Path, lookup: Lookup | None = None) -> tuple[Question, ...]:
    """The questions of a file in its order; DatasetError says where a file is wrong, or that it is of another dataset.

    Questions that their dataset calls unanswerable are left out.
    lookup: resolves gold paragraphs that a file gives by id (`jsonl`, StrategyQA), e.g. `TantivyRetriever.paragraphs`.
    """
    return tuple(annotated.question for annotated in load_annotated(dataset, path, lookup))


def load_annotated(dataset: str, path: Path, lookup: Lookup | None = None) -> tuple[AnnotatedQuestion, ...]:
    """The same, each question with the other paragraphs of its record, and its chain where somebody wrote one."""
    return tuple(record.annotated for record in read_records(dataset, path, lookup))


def read_records(dataset: str, path: Path, lookup: Lookup | None = None) -> Iterator[Record]:
    """The same, each question with its place and its bytes."""
    reader = _reader(dataset, path, lookup)
    check_form(dataset, path)
    ids = set()
    for record in reader:
        question = record.annotated.question
        _check(question, record.place)
        if question.id in ids:
            raise DatasetError(f"{record.place}: a question before has the id {question.id!r} too; give each its own")
        ids.add(question.id)
        yield record
    if not ids:
        raise DatasetError(f"{path} holds no questions; check that it is the right file")


def _check(question: Question, place: str) -> None:
    if not question.id.strip() or not question.text.strip():
        raise DatasetError(f"{place}: the id or the question is empty; fill it in or take the record out")
    if (size := len(question.id.encode())) > LONGEST_ID:
        raise DatasetError(f"{place}: the id has {size:,} bytes, and at most {LONGEST_ID:,} are taken; shorten it")


def check_form(dataset: str, path: Path) -> None:
    """Raises DatasetError where the file seems to be something else than questions of this dataset."""
    form = form_of(path, DatasetError)
    if form and form.dataset == dataset:
        return
    if form and form.dataset:
        raise DatasetError(
            f"{path}, {'entry' if form.is_list else 'line'} 1: this seems to be from {form.holds}; "
            f"name the dataset {form.dataset!r} instead of {dataset!r}, or give another file"
        )
    if what := seems(path, DatasetError):
        raise DatasetError(f"{path} seems {what}, going by how it begins, and no questions; give another file")


def _reader(dataset: str, path: Path, lookup: Lookup | None) -> Iterator[Record]:
    match dataset:
        case "hotpotqa":
            return hotpotqa.read(path)
        case "2wikimultihopqa":
            return wikimultihop.read(path)
        case "musique":
            return musique.read(path)
        case "iirc":
            return iirc.read(path)
        case "strategyqa":
            return strategyqa.read(path, lookup)
        case "tempquestions":
            return tempquestions.read(path)
        case "infotabs":
            return infotabs.read(path)
        case "ircot":
            return processed.read(path)
        case "jsonl":
            return plain.read(path, lookup)
    raise UnknownNameError(f"there is no dataset {dataset!r}; there are: {', '.join(DATASETS)}")
