"""HotpotQA's files (`hotpot_*_v1.json`), and 2WikiMultihopQA's, which have the same form: a list of questions."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.datasets.records import decode, entries
from cotrail.errors import DatasetError
from cotrail.questions import GoldParagraph, Question

Context = tuple[tuple[str, tuple[str, ...]], ...]
"""Paragraphs, each a title and its sentences."""


class Entry(Struct, frozen=True):
    """A question as published; test files have neither answers nor supporting facts."""

    id: str = msgspec.field(name="_id")
    question: str
    context: Context
    answer: str | None = None
    supporting_facts: tuple[tuple[str, int], ...] = ()


def read(path: Path) -> Iterator[tuple[str, Question]]:
    """The questions of the file, each with its place in it."""
    for place, raw in entries(path, DatasetError):
        yield place, _question(decode(raw, Entry, place, DatasetError))


def joined(sentences: Sequence[str]) -> str:
    """A paragraph's text: its sentences with one space between."""
    return " ".join(stripped for sentence in sentences if (stripped := sentence.strip()))


def _question(entry: Entry) -> Question:
    supporting = {title for title, _ in entry.supporting_facts}
    return Question(
        id=entry.id,
        text=entry.question,
        answers=() if entry.answer is None else (entry.answer,),
        gold=tuple(
            GoldParagraph(title=title, text=joined(sentences))
            for title, sentences in entry.context
            if title in supporting
        ),
    )
