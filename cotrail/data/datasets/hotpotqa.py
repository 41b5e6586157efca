"""HotpotQA's files (`hotpot_*_v1*.json`): a list of questions, each with its paragraphs, and its records."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode
from cotrail.common.records import records
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
from cotrail.errors import CorpusError, DatasetError, InputError

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


def parted_context(
    context: Sequence[Any], facts: Sequence[Any], place: str
) -> tuple[tuple[GoldParagraph, ...], tuple[GoldParagraph, ...]]:
    """The paragraphs of a record as published that have supporting facts, and the others; DatasetError."""
    record = {"_id": "", "question": "", "context": context, "supporting_facts": facts}
    whole = annotated(decode(msgspec.json.encode(record), HotpotQuestion, place, DatasetError), ())
    return whole.question.gold, whole.distractors


# Rows as Hugging Face has them: lists are columns, as {"title": [...], "sentences": [...]}, or JSON in a text.

_NESTED = {"context": ("title", "sentences", "content"), "supporting_facts": ("title", "sent_id"), "paragraphs": ()}
"""The fields that hold lists of records, with the names of what their publishers have as plain lists."""


def as_published(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its id and its lists as the publishers' own files have them; other shapes stay as they are."""
    record = {field: _listed(value, _NESTED[field]) if field in _NESTED else value for field, value in row.items()}
    return record | {"_id": str(row["id"])} if "id" in row and "_id" not in row else record


def _listed(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
    if not isinstance(value, dict) or not all(isinstance(column, list) for column in value.values()):
        return value
    columns = [value[name] for name in names or value if name in value]
    if len({len(column) for column in columns}) > 1:
        return value
    rows = list(zip(*columns, strict=True))
    return rows if names else [dict(zip(value, row, strict=True)) for row in rows]


def published(place: str, raw: bytes, error: type[InputError] = DatasetError) -> bytes:
    """The same of rows in JSON."""
    return msgspec.json.encode(as_published(decode(raw, dict[str, Any], place, error)))


def row_paragraphs(place: str, raw: bytes) -> Iterator[tuple[str, str]]:
    """The titles and texts of the paragraphs of such a row, or of one of SQuAD's, which has one."""
    row = decode(raw, dict[str, Any], place, CorpusError)
    match row.get("context"):
        case str() as text if "supporting_facts" not in row:
            return iter(((str(row.get("title") or ""), text),))
    return paragraphs(place, published(place, raw, CorpusError))


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
