"""FEVER's files (`paper_dev.jsonl` and others, Thorne et al. 2018): a claim a line, with its label and its evidence."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.core.questions import Question, named
from cotrail.data.datasets import kilt, spec
from cotrail.data.datasets.kilt import LABELS, THREE_LABELS_QUESTION, answer_of, as_question
from cotrail.errors import DatasetError

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


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
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


SPEC = spec.dataset(
    "fever",
    spec.QuestionForm(format=spec.FileFormat("FEVER's claims", False, frozenset({"id", "claim"})), read=read),
    kilt.form("fever", "fact-checking"),
)
