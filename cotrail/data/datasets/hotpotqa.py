"""HotpotQA's files (`hotpot_*_v1*.json`): a list of questions, each with its paragraphs, and its records."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode, records
from cotrail.core.questions import Question, joined, named
from cotrail.data.corpora import hotpotqa_abstracts
from cotrail.data.datasets import flashrag, ircot_processed
from cotrail.data.datasets.hub_rows import Context, Facts, published, row_paragraphs, supported
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


class HotpotQuestion(Struct, frozen=True):
    """A question as published; test files have neither answers nor supporting facts."""

    id: str = msgspec.field(name="_id")
    question: str
    context: Context
    answer: str | None = None
    supporting_facts: Facts = ()
    type: str = ""
    level: str = ""


class _Contexts(Struct, frozen=True):
    context: Context


def annotated(entry: HotpotQuestion, answers: tuple[str, ...]) -> AnnotatedQuestion:
    """The entry as a question with these answers; paragraphs with supporting facts are gold, with these sentences."""
    gold, distractors = parted(supported(entry.context, entry.supporting_facts))
    kinds = named(type=entry.type, level=entry.level)
    question = Question(id=entry.id, text=entry.question, answers=answers, gold=gold, kinds=kinds)
    return AnnotatedQuestion(question=question, distractors=distractors)


def paragraphs(place: str, raw: bytes, _seed: int = 0) -> Iterator[tuple[str, str]]:
    """The titles and texts of a question's paragraphs."""
    context = decode(raw, _Contexts, place, CorpusError).context
    return ((title, joined(sentences)) for title, sentences in context)


def read(path: Path, _lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    """Read the questions of a file, be it the publishers' own or of such rows."""
    for place, raw in records(path, DatasetError):
        entry = decode(published(place, raw), HotpotQuestion, place, DatasetError)
        answers = () if entry.answer is None else (entry.answer,)
        yield QuestionRecord(place=place, raw=raw, annotated=annotated(entry, answers))


def row_form(
    holds: str, reader: Callable[[Path, ParagraphLookup | None], Iterator[QuestionRecord]], **known_by: frozenset[str]
) -> QuestionForm:
    """The form of such rows; known_by: the keys that they have (`has`), and that they lack (`lacks`)."""
    keys = frozenset({"question", "answer", "context", "supporting_facts"}) | known_by["has"]
    return QuestionForm(
        format=FileFormat(f"{holds} as Hugging Face has them", None, keys, known_by.get("lacks", frozenset())),
        read=reader,
        paragraphs=row_paragraphs,
        paragraphs_key="context",
    )


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
                "HotpotQA's questions",
                True,
                frozenset({"_id", "question", "context"}),
                frozenset({"evidences", "previous_question"}),
            ),
            read=read,
            paragraphs=row_paragraphs,
            paragraphs_key="context",
        ),
        row_form("HotpotQA's questions", read, has=frozenset({"level"}), lacks=frozenset({"evidences"})),
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
