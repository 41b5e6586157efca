"""FEVER's files (`paper_dev.jsonl` and others, Thorne et al. 2018): a claim a line, with its label and its evidence."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, lines
from cotrail.core.question_kinds import named
from cotrail.core.questions import Question
from cotrail.data.datasets.annotated import AnnotatedQuestion, QuestionRecord
from cotrail.errors import DatasetError

TWO_LABELS = {"SUPPORTS": "true", "REFUTES": "false"}
"""The labels of KILT's version, as answers."""

LABELS = {**TWO_LABELS, "NOT ENOUGH INFO": "not enough info"}

ASKED = "Is the following claim true or false?"
ALL_ASKED = "Is the following claim true or false, or is there not enough info?"

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


def read(path: Path) -> Iterator[QuestionRecord]:
    """Read the claims of a file as questions; evidence: the titles of the pages that annotators named."""
    for place, raw in lines(path, DatasetError):
        line = decode(raw, FeverClaim, place, DatasetError)
        titles = (title_of(title) for group in line.evidence for _, _, title, _ in group if title)
        question = Question(
            id=str(line.id),
            text=as_question(line.claim, ALL_ASKED),
            answers=() if line.label is None else (answer_of(line.label, LABELS, place),),
            evidence=tuple(dict.fromkeys(titles)),
            kinds=named(label=line.label or ""),
        )
        yield QuestionRecord(place=place, raw=raw, annotated=AnnotatedQuestion(question=question))


def as_question(claim: str, asked: str) -> str:
    """Put what is asked before the claim; empty where the claim is."""
    stripped = claim.strip()
    return stripped and f"{asked} {stripped}"


def answer_of(label: str, labels: dict[str, str], place: str) -> str:
    """The answer that stands for a label; DatasetError where there is no such label."""
    if label not in labels:
        known = " or ".join(labels)
        raise DatasetError(f"{place}: the label is {label!r}; correct it to {known}, or take the line out")
    return labels[label]


def title_of(escaped: str) -> str:
    """The title of a page: with spaces, parentheses, brackets and colons, which FEVER's files escape."""
    return _ESCAPED.sub(lambda found: _CHARACTERS[found[1]], escaped).replace("_", " ")
