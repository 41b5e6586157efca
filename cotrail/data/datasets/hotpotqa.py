"""HotpotQA's files (`hotpot_*_v1*.json`): a list of questions, each with its paragraphs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, entries
from cotrail.core.question_kinds import named
from cotrail.core.questions import GoldParagraph, Question
from cotrail.data.datasets.annotated import AnnotatedQuestion, QuestionRecord, parted
from cotrail.errors import DatasetError

Context = tuple[tuple[str, tuple[str, ...]], ...]
"""Paragraphs, each a title and its sentences."""


class HotpotQuestion(Struct, frozen=True):
    """A question as published; test files have neither answers nor supporting facts."""

    id: str = msgspec.field(name="_id")
    question: str
    context: Context
    answer: str | None = None
    supporting_facts: tuple[tuple[str, int], ...] = ()
    type: str = ""
    level: str = ""


def read(path: Path) -> Iterator[QuestionRecord]:
    """Read the questions of a file."""
    for place, raw in entries(path, DatasetError):
        entry = decode(raw, HotpotQuestion, place, DatasetError)
        answers = () if entry.answer is None else (entry.answer,)
        yield QuestionRecord(place=place, raw=bytes(raw), annotated=annotated(entry, answers))


def annotated(entry: HotpotQuestion, answers: tuple[str, ...]) -> AnnotatedQuestion:
    """The entry as a question with these answers; paragraphs with supporting facts are gold."""
    supporting = {title for title, _ in entry.supporting_facts}
    gold, distractors = parted(
        (GoldParagraph(title=title, text=joined(sentences)), title in supporting) for title, sentences in entry.context
    )
    kinds = named(type=entry.type, level=entry.level)
    question = Question(id=entry.id, text=entry.question, answers=answers, gold=gold, kinds=kinds)
    return AnnotatedQuestion(question=question, distractors=distractors)


def joined(sentences: Sequence[str]) -> str:
    """A paragraph's text: its sentences with one space between."""
    return " ".join(stripped for sentence in sentences if (stripped := sentence.strip()))
