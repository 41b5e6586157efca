"""KILT's files (`*-kilt.jsonl`, Petroni et al. 2021) of the tasks that have answers and no paragraphs of their own:
slot filling (zsRE, T-REx), fact checking (FEVER) and long answers (ELI5). One format for all of them, a record a line.

The pages of KILT's Wikipedia are named by title in a record's provenance.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from cotrail.common.json_files import decode, lines
from cotrail.core.question_kinds import named
from cotrail.core.questions import Question
from cotrail.data.datasets import fever
from cotrail.data.datasets.annotated import AnnotatedQuestion, QuestionRecord
from cotrail.errors import DatasetError

SLOT_FILLING = frozenset({"zsre", "trex"})

SEPARATOR = "[SEP]"
"""Stands between a subject and a relation."""


class _Provenance(Struct, frozen=True):
    """Where a page supports an answer."""

    title: str | None = None


class _Output(Struct, frozen=True):
    """An answer and where pages support it; some outputs have only the one or the other."""

    answer: str | None = None
    provenance: tuple[_Provenance, ...] = ()


class KiltRecord(Struct, frozen=True):
    """A record as published; test files have no output. meta: what a dataset adds, mostly an object."""

    id: int | str
    input: str
    output: tuple[_Output, ...] = ()
    meta: Any = None


def read(dataset: str, path: Path) -> Iterator[QuestionRecord]:
    """Read the records of a file, which must be the dataset's; evidence: the titles of the pages in the provenance."""
    for place, raw in lines(path, DatasetError):
        record = decode(raw, KiltRecord, place, DatasetError)
        _check(record, dataset, place)
        yield QuestionRecord(
            place=place, raw=raw, annotated=AnnotatedQuestion(question=_question(record, dataset, place))
        )


def _check(record: KiltRecord, dataset: str, place: str) -> None:
    """A file doesn't say of which task it is: they are told apart where their fields allow."""
    if (dataset in SLOT_FILLING) != (SEPARATOR in record.input):
        has = "has" if SEPARATOR in record.input else "hasn't"
        raise DatasetError(
            f"{place}: the input {has} {SEPARATOR} between a subject and a relation, as inputs of zsRE and T-REx have, "
            f"so it isn't of {dataset!r}; name its dataset, or correct the record"
        )
    # Copies in one table for all tasks have every field in each record, empty where the task has none.
    if dataset == "trex" and isinstance(record.meta, dict) and record.meta.get("template_questions"):
        raise DatasetError(f"{place}: it has template_questions, as records of zsRE have; name the dataset 'zsre'")
    if dataset == "eli5" and any((each.answer or "").strip() in fever.LABELS for each in record.output):
        raise DatasetError(f"{place}: its answer is a label of FEVER; name the dataset 'fever', or correct the record")


def _question(record: KiltRecord, dataset: str, place: str) -> Question:
    answers = [answer for each in record.output if each.answer and (answer := each.answer.strip())]
    if dataset == "fever":
        answers = [fever.answer_of(label, fever.TWO_LABELS, place) for label in answers]
    titles = (each.title for output in record.output for each in output.provenance if each.title)
    return Question(
        id=str(record.id),
        text=_text(record.input, dataset),
        answers=tuple(dict.fromkeys(answers)),
        evidence=tuple(dict.fromkeys(titles)),
        kinds=_kinds(record, dataset),
    )


def _kinds(record: KiltRecord, dataset: str) -> dict[str, str]:
    """The relation of slot filling, the label of a claim."""
    if dataset in SLOT_FILLING:
        return named(relation=record.input.rpartition(SEPARATOR)[2].strip())
    labels = (each.answer for each in record.output if each.answer) if dataset == "fever" else ()
    return named(label=next(iter(labels), "").strip())


def _text(given: str, dataset: str) -> str:
    """What a model is asked; empty where the claim, the subject or the relation is.

    The names of relations are nouns ("author"), verbs ("educated at") and others, so no sentence suits all of them.
    """
    if dataset == "fever":
        return fever.as_question(given, fever.ASKED)
    if dataset not in SLOT_FILLING:
        return given
    subject, _, relation = (part.strip() for part in given.rpartition(SEPARATOR))
    return f"Subject: {subject}; relation: {relation}. What is the object?" if subject and relation else ""
