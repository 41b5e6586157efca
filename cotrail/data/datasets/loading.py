"""Loading of question files in the publishers' formats, after a check that a file is of the named dataset."""

from collections.abc import Callable, Iterator
from pathlib import Path

from cotrail.common.nearest import unknown
from cotrail.core.questions import Question
from cotrail.data.datasets import (
    big_bench,
    fever,
    hotpotqa,
    iirc,
    infotabs,
    ircot_processed,
    jsonl,
    kilt,
    musique,
    strategyqa,
    tempquestions,
    wikimultihop,
)
from cotrail.data.datasets.annotated import AnnotatedQuestion, QuestionRecord
from cotrail.data.datasets.catalogue import CATALOGUE
from cotrail.data.datasets.file_formats import BIG_BENCH, KILT, PROCESSED, apparent_content, detect_format
from cotrail.data.datasets.jsonl import ParagraphLookup
from cotrail.data.datasets.official_answers import check_aliases, check_whole, completed
from cotrail.data.record_checks import check_id, check_length, check_text
from cotrail.errors import DatasetError, UnknownNameError

DATASETS = tuple(CATALOGUE)
"""The names of the datasets."""


def load_questions(
    dataset: str, path: Path, lookup: ParagraphLookup | None = None, official: Path | None = None
) -> tuple[Question, ...]:
    """Load the questions of a file in its order; DatasetError names the bad record or the dataset that the file is of.

    Questions that the dataset marks as unanswerable are left out.
    lookup: resolves gold paragraphs that a file gives by id (`jsonl`, StrategyQA), e.g. `TantivyRetriever.paragraphs`.
    official: the dataset's own file, from which processed questions of 2WikiMultihopQA and MuSiQue take their answers.
    """
    questions = tuple(annotated.question for annotated in load_annotated(dataset, path, lookup))
    if not is_processed(path):
        if official:
            raise DatasetError(f"{path} is the dataset's own file already; leave out {official} as its official one")
        return questions
    published = load_official(dataset, official, str(path))
    return completed(questions, published, official) if official else questions


def load_official(dataset: str, official: Path | None, what: str) -> dict[str, Question]:
    """Load the questions of the dataset's own file by id; empty where no file is given.

    what: names the processed questions in the DatasetError that says that the own file is required.
    """
    if official is None:
        check_whole(dataset, what)
        return {}
    check_aliases(dataset, official)
    return {question.id: question for question in load_questions(dataset, official)}


def load_annotated(dataset: str, path: Path, lookup: ParagraphLookup | None = None) -> tuple[AnnotatedQuestion, ...]:
    """Load the questions with the other paragraphs of their records, and with the chains that annotators wrote."""
    return tuple(record.annotated for record in read_records(dataset, path, lookup))


def read_records(dataset: str, path: Path, lookup: ParagraphLookup | None = None) -> Iterator[QuestionRecord]:
    """Read the questions with their places and their bytes."""
    check_dataset(dataset)
    check_form(dataset, path)
    ids = set()
    for record in _records(dataset, path, lookup):
        question = record.annotated.question
        _check(question, record.place)
        if question.id in ids:
            raise DatasetError(f"{record.place}: a question before has the id {question.id!r} too; give each its own")
        ids.add(question.id)
        yield record
    if not ids:
        raise DatasetError(f"{path} holds no questions; check that it is the right file")


def check_dataset(name: str) -> None:
    """Raises UnknownNameError, which has the nearest name and all, where there is no dataset of that name."""
    if name not in DATASETS:
        hint = "; name the dataset that the authors of IRCoT processed" if name == "ircot" else ""
        raise UnknownNameError(f"{unknown('dataset', name, DATASETS)}{hint}")


def _check(question: Question, place: str) -> None:
    check_id(question.id, place, DatasetError)
    check_text(question.text, "question", place, DatasetError)
    for paragraph in (*question.gold, *([question.pinned] if question.pinned else [])):
        check_length(len(paragraph.title) + len(paragraph.text), "paragraph", place, DatasetError)


def is_processed(path: Path) -> bool:
    """Return whether the file is one that the authors of IRCoT processed."""
    return detect_format(path, DatasetError) == PROCESSED


def has_snippets(dataset: str, path: Path) -> bool:
    """Return whether the file's gold is parts of paragraphs (IIRC's own), which `located` of the metrics resolves."""
    return dataset == "iirc" and not is_processed(path)


def check_form(dataset: str, path: Path) -> None:
    """Raise DatasetError where the file seems to hold something other than questions of this dataset."""
    form = detect_format(path, DatasetError)
    if form and dataset in form.datasets:
        return
    if form and form.datasets:
        named = " or ".join(map(repr, form.datasets))
        raise DatasetError(
            f"{path}, {'entry' if form.is_list else 'line'} 1: this seems to be from {form.holds}; "
            f"name the dataset {named} instead of {dataset!r}, or give another file"
        )
    if what := apparent_content(path, DatasetError):
        raise DatasetError(f"{path} seems {what}, going by how it begins, and no questions; give another file")


def _records(dataset: str, path: Path, lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    """The records of a file in its form, which is one of the dataset's."""
    form = detect_format(path, DatasetError)
    if form == PROCESSED:
        return ircot_processed.read(dataset, path)
    if form == BIG_BENCH:
        return big_bench.read(path)
    if form == KILT or dataset in ("zsre", "trex", "eli5"):
        return kilt.read(dataset, path)
    if dataset in ("strategyqa", "strategyqa-facts"):
        return strategyqa.read(path, lookup, facts=dataset == "strategyqa-facts")
    if dataset == "jsonl":
        return jsonl.read(path, lookup)
    return _OWN[dataset](path)


_OWN: dict[str, Callable[[Path], Iterator[QuestionRecord]]] = {
    "hotpotqa": hotpotqa.read,
    "2wikimultihopqa": wikimultihop.read,
    "musique": musique.read,
    "iirc": iirc.read,
    "tempquestions": tempquestions.read,
    "infotabs": infotabs.read,
    "fever": fever.read,
}
"""The readers of datasets whose own files need nothing else."""
