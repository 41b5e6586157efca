"""MuSiQue's files (`musique_*_v1.0_*.jsonl`): a question a line, with its twenty paragraphs."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cotrail.datasets.records import decode, lines
from cotrail.errors import DatasetError
from cotrail.questions import GoldParagraph, Question


class ContextParagraph(Struct, frozen=True):
    """A paragraph as published."""

    title: str
    paragraph_text: str
    is_supporting: bool = False


class Line(Struct, frozen=True):
    """A question as published; test files have no answers."""

    id: str
    question: str
    paragraphs: tuple[ContextParagraph, ...]
    answer: str | None = None
    answer_aliases: tuple[str, ...] = ()
    answerable: bool = True


def read(path: Path) -> Iterator[tuple[str, Question]]:
    """The answerable questions of the file, each with its place in it."""
    for place, raw in lines(path, DatasetError):
        line = decode(raw, Line, place, DatasetError)
        if line.answerable:
            yield place, _question(line)


def _question(line: Line) -> Question:
    answers = () if line.answer is None else (line.answer, *line.answer_aliases)
    return Question(
        id=line.id,
        text=line.question,
        answers=tuple(dict.fromkeys(answers)),
        gold=tuple(
            GoldParagraph(title=paragraph.title, text=paragraph.paragraph_text)
            for paragraph in line.paragraphs
            if paragraph.is_supporting
        ),
    )
