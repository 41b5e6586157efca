"""HotpotQA's files (`hotpot_*_v1*.json`): a list of questions, each with its paragraphs."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, entries
from cotrail.core.paragraphs import joined
from cotrail.core.question_kinds import named
from cotrail.core.questions import GoldParagraph, Question
from cotrail.data.corpora import hotpotqa_abstracts
from cotrail.data.corpora.recipe import Recipe
from cotrail.data.datasets import ircot_processed
from cotrail.data.datasets.annotated import AnnotatedQuestion, ParagraphLookup, QuestionRecord, parted
from cotrail.data.datasets.scoring import Scoring
from cotrail.data.datasets.spec import DatasetSpec, FileFormat, QuestionForm
from cotrail.errors import CorpusError, DatasetError

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


def read(path: Path, _lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
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


def paragraphs(place: str, raw: bytes, _seed: int = 0) -> Iterator[tuple[str, str]]:
    """The titles and texts of a question's paragraphs; 2WikiMultihopQA's questions have them in the same form."""
    context = decode(raw, _Contexts, place, CorpusError).context
    return ((title, joined(sentences)) for title, sentences in context)


SPEC = DatasetSpec(
    name="hotpotqa",
    title="HotpotQA",
    files=f"hotpot_train_v1.1.json, hotpot_dev_distractor_v1.json, {ircot_processed.FILES}",
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
