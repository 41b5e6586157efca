"""An invented dataset, as one in a file of its own is written: lines of riddles, each with the texts that solve it."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, lines
from cotrail.core.questions import GoldParagraph, Question, named
from cotrail.data.corpora import hotpotqa_abstracts
from cotrail.data.datasets.spec import (
    AnnotatedQuestion,
    DatasetSpec,
    FileFormat,
    ParagraphLookup,
    QuestionForm,
    QuestionRecord,
    Recipe,
    Scoring,
)
from cotrail.errors import CorpusError, DatasetError


class Riddle(Struct, frozen=True):
    """A riddle as published."""

    number: int
    riddle: str
    solution: str
    texts: dict[str, str] = {}
    age: str = ""


class _Texts(Struct, frozen=True):
    texts: dict[str, str]


def read(path: Path, _lookup: ParagraphLookup | None) -> Iterator[QuestionRecord]:
    """Read the riddles of a file; their texts are gold."""
    for place, raw in lines(path, DatasetError):
        riddle = decode(raw, Riddle, place, DatasetError)
        question = Question(
            id=str(riddle.number),
            text=riddle.riddle,
            answers=(riddle.solution,),
            gold=tuple(GoldParagraph(title=title, text=text) for title, text in riddle.texts.items()),
            kinds=named(age=riddle.age),
        )
        yield QuestionRecord(place=place, raw=raw, annotated=AnnotatedQuestion(question=question))


def texts(place: str, raw: bytes, _seed: int = 0) -> Iterator[tuple[str, str]]:
    """The titles and texts of a riddle."""
    return iter(decode(raw, _Texts, place, CorpusError).texts.items())


SPEC = DatasetSpec(
    name="riddles",
    title="Riddles",
    files="riddles.jsonl",
    source="an old book",
    asks="what is meant",
    metric="accuracy",
    kinds="age: old, new",
    forms=(
        QuestionForm(
            format=FileFormat("riddles", False, frozenset({"number", "riddle"})),
            read=read,
            paragraphs=texts,
            paragraphs_key="texts",
        ),
    ),
    scoring=Scoring("label", long_answers=True),
    sort="slot-filling",
    recipe=Recipe(
        needs="riddles.jsonl",
        seems="to hold riddles",
        records=hotpotqa_abstracts.lines,
        paragraphs=texts,
        paper_paragraphs=2,
    ),
)
