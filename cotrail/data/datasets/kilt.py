"""KILT's files (`*-kilt.jsonl`, Petroni et al. 2021) of the tasks that have answers and no paragraphs of their own:
slot filling (zsRE, T-REx), fact checking (FEVER) and long answers (ELI5). One format for all of them, a record a line.

The pages of KILT's Wikipedia are named by title in a record's provenance. FEVER's own files are read here too.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.core.questions import Question, QuestionSort, named
from cotrail.data.datasets import spec
from cotrail.errors import DatasetError

# FEVER's labels, and its claims as questions: of its own files, and of KILT's version of them.

TWO_LABELS = {"SUPPORTS": "true", "REFUTES": "false"}
"""The labels of KILT's version, as answers."""

LABELS = {**TWO_LABELS, "NOT ENOUGH INFO": "not enough info"}

TWO_LABELS_QUESTION = "Is the following claim true or false?"
THREE_LABELS_QUESTION = "Is the following claim true or false, or is there not enough info?"


def as_question(claim: str, prompt: str) -> str:
    """Put what is asked before the claim; empty where the claim is."""
    stripped = claim.strip()
    return stripped and f"{prompt} {stripped}"


def answer_of(label: str, labels: dict[str, str], place: str) -> str:
    """The answer that stands for a label; DatasetError where there is no such label."""
    if label not in labels:
        choices = " or ".join(labels)
        raise DatasetError(f"{place}: the label is {label!r}; correct it to {choices}, or take the line out")
    return labels[label]


SEPARATOR = "[SEP]"
"""Stands between a subject and a relation."""


class _Provenance(Struct, frozen=True):
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


def form(dataset: str, sort: QuestionSort) -> spec.QuestionForm:
    """The form for that dataset, whose questions are of that sort; a file doesn't say of which dataset it is."""
    return spec.QuestionForm(format=spec.FORMATS["kilt"], read=partial(_read, dataset, sort))


def _read(
    dataset: str, sort: QuestionSort, path: Path, _lookup: spec.ParagraphLookup | None
) -> Iterator[spec.QuestionRecord]:
    """Read the records of a file, which must be the dataset's; evidence: the titles of the pages in the provenance."""
    for place, raw in records(path, DatasetError):
        record = decode(raw, KiltRecord, place, DatasetError)
        _check(record, dataset, sort, place)
        yield spec.QuestionRecord(
            place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=_question(record, sort, place))
        )


def _check(record: KiltRecord, dataset: str, sort: QuestionSort, place: str) -> None:
    """A file doesn't say of which task it is: they are distinguished where their fields allow."""
    if (sort == "slot-filling") != (SEPARATOR in record.input):
        has = "has" if SEPARATOR in record.input else "hasn't"
        raise DatasetError(
            f"{place}: the input {has} {SEPARATOR} between a subject and a relation, as inputs of zsRE and T-REx have, "
            f"so it isn't of {dataset!r}; name its dataset, or correct the record"
        )
    # Copies in one table for all tasks have every field in each record, empty where the task has none.
    if dataset == "trex" and isinstance(record.meta, dict) and record.meta.get("template_questions"):
        raise DatasetError(f"{place}: it has template_questions, as records of zsRE have; name the dataset 'zsre'")
    if sort == "long-form" and any((each.answer or "").strip() in LABELS for each in record.output):
        raise DatasetError(f"{place}: its answer is a label of FEVER; name the dataset 'fever', or correct the record")


def _question(record: KiltRecord, sort: QuestionSort, place: str) -> Question:
    answers = [answer for each in record.output if each.answer and (answer := each.answer.strip())]
    if sort == "fact-checking":
        answers = [answer_of(label, TWO_LABELS, place) for label in answers]
    titles = (each.title for output in record.output for each in output.provenance if each.title)
    return Question(
        id=str(record.id),
        text=_text(record.input, sort),
        answers=tuple(dict.fromkeys(answers)),
        evidence=tuple(dict.fromkeys(titles)),
        kinds=_kinds(record, sort),
    )


def _kinds(record: KiltRecord, sort: QuestionSort) -> dict[str, str]:
    """The relation of slot filling, the label of a claim."""
    if sort == "slot-filling":
        return named(relation=record.input.rpartition(SEPARATOR)[2].strip())
    labels = (each.answer for each in record.output if each.answer) if sort == "fact-checking" else ()
    return named(label=next(iter(labels), "").strip())


def _text(text: str, sort: QuestionSort) -> str:
    """What a model is asked; empty where the claim, the subject or the relation is.

    The names of relations are nouns ("author"), verbs ("educated at") and others, so no sentence suits all of them.
    """
    if sort == "fact-checking":
        return as_question(text, TWO_LABELS_QUESTION)
    if sort != "slot-filling":
        return text
    subject, _, relation = (part.strip() for part in text.rpartition(SEPARATOR))
    return f"Subject: {subject}; relation: {relation}. What is the object?" if subject and relation else ""


# The datasets that have nothing but KILT's form.

ZSRE = spec.dataset("zsre", form("zsre", "slot-filling"))
"""zsRE's files in KILT's form: relations that a model was never trained on (Levy et al. 2017)."""

TREX = spec.dataset("trex", form("trex", "slot-filling"))
"""T-REx's files in KILT's form: facts of Wikidata (Elsahar et al. 2018)."""

ELI5 = spec.dataset("eli5", form("eli5", "long-form"))
"""ELI5's files in KILT's form: questions from a forum with long answers (Fan et al. 2019)."""


# FEVER's own files (`paper_dev.jsonl` and others, Thorne et al. 2018): a claim a line, with its label and its evidence.

AnnotatedSentence = tuple[int | None, int | None, str | None, int | None]
"""Ids of the annotation and of the evidence, the page's escaped title, the sentence's number; the last two None where
annotators found nothing."""

_ESCAPED = re.compile(r"-(LRB|RRB|LSB|RSB|COLON)-")
_CHARACTERS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "COLON": ":"}


class FeverClaim(Struct, frozen=True):
    """A claim as published; test files have neither labels nor evidence."""

    id: int | str
    claim: str
    label: str | None = None
    evidence: tuple[tuple[AnnotatedSentence, ...], ...] = ()


def read_claims(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the claims of a file as questions; evidence: the titles of the pages that annotators named."""
    for place, raw in records(path, DatasetError):
        line = decode(raw, FeverClaim, place, DatasetError)
        titles = (title_of(title) for group in line.evidence for _, _, title, _ in group if title)
        question = Question(
            id=str(line.id),
            text=as_question(line.claim, THREE_LABELS_QUESTION),
            answers=() if line.label is None else (answer_of(line.label, LABELS, place),),
            evidence=tuple(dict.fromkeys(titles)),
            kinds=named(label=line.label or ""),
        )
        yield spec.QuestionRecord(place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


def title_of(escaped: str) -> str:
    """The title of a page: with spaces, parentheses, brackets and colons, which FEVER's files escape."""
    return _ESCAPED.sub(lambda found: _CHARACTERS[found[1]], escaped).replace("_", " ")


FEVER = spec.dataset(
    "fever", spec.QuestionForm(format=spec.FORMATS["fever"], read=read_claims), form("fever", "fact-checking")
)
