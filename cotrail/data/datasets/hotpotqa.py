"""HotpotQA's files (`hotpot_*_v1*.json`): a list of questions, each with its paragraphs, and its records."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, entries
from cotrail.core.questions import GoldParagraph, Question, joined, named
from cotrail.data.corpora import hotpotqa_abstracts
from cotrail.data.datasets import flashrag, ircot_processed
from cotrail.data.datasets.spec import (
    AnnotatedQuestion,
    DatasetSpec,
    FileFormat,
    ParagraphLookup,
    QuestionForm,
    QuestionRecord,
    Recipe,
    Scoring,
    parted,
)
from cotrail.errors import CorpusError, DatasetError

# A question of HotpotQA as published, with its paragraphs; 2WikiMultihopQA's have the same form.

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


class _Contexts(Struct, frozen=True):
    context: Context


def annotated(entry: HotpotQuestion, answers: tuple[str, ...]) -> AnnotatedQuestion:
    """The entry as a question with these answers; paragraphs with supporting facts are gold, with these sentences."""
    supporting = {title for title, _ in entry.supporting_facts}
    gold, distractors = parted(
        (GoldParagraph(title=title, text=joined(sentences), facts=_facts(entry, title, sentences)), title in supporting)
        for title, sentences in entry.context
    )
    kinds = named(type=entry.type, level=entry.level)
    question = Question(id=entry.id, text=entry.question, answers=answers, gold=gold, kinds=kinds)
    return AnnotatedQuestion(question=question, distractors=distractors)


def _facts(entry: HotpotQuestion, title: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """The supporting sentences of a paragraph; some questions name numbers that it doesn't have."""
    numbers = sorted({number for named, number in entry.supporting_facts if named == title})
    return tuple(filter(None, (sentences[number].strip() for number in numbers if 0 <= number < len(sentences))))


def paragraphs(place: str, raw: bytes, _seed: int = 0) -> Iterator[tuple[str, str]]:
    """The titles and texts of a question's paragraphs."""
    context = decode(raw, _Contexts, place, CorpusError).context
    return ((title, joined(sentences)) for title, sentences in context)


def read(path: Path, _lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    """Read the questions of a file."""
    for place, raw in entries(path, DatasetError):
        entry = decode(raw, HotpotQuestion, place, DatasetError)
        answers = () if entry.answer is None else (entry.answer,)
        yield QuestionRecord(place=place, raw=bytes(raw), annotated=annotated(entry, answers))


SPEC = DatasetSpec(
    name="hotpotqa",
    title="HotpotQA",
    files=f"hotpot_train_v1.1.json, hotpot_dev_distractor_v1.json, {ircot_processed.FILES}, {flashrag.FILES}",
    source="https://hotpotqa.github.io",
    asks="two-step questions about Wikipedia",
    metric="exact match and F1, as its own script",
    kinds="type: bridge, comparison; level: easy, medium, hard",
    forms=(
        QuestionForm(
            format=FileFormat(
                "HotpotQA's questions", True, frozenset({"_id", "context", "level"}), frozenset({"evidences"})
            ),
            read=read,
            paragraphs=paragraphs,
            paragraphs_key="context",
        ),
        ircot_processed.form("hotpotqa"),
        flashrag.form(type="type", level="level"),
    ),
    scoring=Scoring("hotpotqa"),
    recipe=Recipe(
        needs="the unpacked dump of Wikipedia's abstracts, a folder of wiki_*.bz2",
        seems="to be a bz2 archive",
        files=hotpotqa_abstracts.files,
        records=hotpotqa_abstracts.records,
        paragraphs=hotpotqa_abstracts.paragraphs,
        paper_paragraphs=5_233_329,
    ),
)
