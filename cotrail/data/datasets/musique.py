"""MuSiQue's files (`musique_*_v1.0_*.jsonl`): a question a line, with its twenty paragraphs."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from cotrail.common.json_files import decode, lines
from cotrail.core.question_kinds import named
from cotrail.core.questions import GoldParagraph, Question
from cotrail.data.datasets.annotated import AnnotatedQuestion, QuestionRecord, parted
from cotrail.errors import DatasetError

_HOPS = re.compile(r"(\d)hop")


class ContextParagraph(Struct, frozen=True):
    """A paragraph as published."""

    title: str
    paragraph_text: str
    is_supporting: bool = False

    def flagged(self) -> tuple[GoldParagraph, bool]:
        """The paragraph, and whether it supports the answer."""
        return GoldParagraph(title=self.title, text=self.paragraph_text), self.is_supporting


class MusiqueQuestion(Struct, frozen=True):
    """A question as published; test files have no answers."""

    id: str
    question: str
    paragraphs: tuple[ContextParagraph, ...]
    answer: str | None = None
    answer_aliases: tuple[str, ...] = ()
    answerable: bool = True


def read(path: Path) -> Iterator[QuestionRecord]:
    """Read the answerable questions of a file."""
    for place, raw in lines(path, DatasetError):
        line = decode(raw, MusiqueQuestion, place, DatasetError)
        if line.answerable:
            yield QuestionRecord(place=place, raw=raw, annotated=_annotated(line))


def _annotated(line: MusiqueQuestion) -> AnnotatedQuestion:
    gold, distractors = parted(paragraph.flagged() for paragraph in line.paragraphs)
    hops, mark, _ = line.id.partition("__")
    question = Question(
        id=line.id,
        text=line.question,
        answers=() if line.answer is None else tuple(dict.fromkeys((line.answer, *line.answer_aliases))),
        gold=gold,
        kinds=named(hops=hops if mark else ""),
    )
    return AnnotatedQuestion(question=question, distractors=distractors)


def hops(kinds: Mapping[str, str]) -> int | None:
    """The number of hops of questions of these kinds, 3 of `3hop2`; None for kinds that aren't MuSiQue's.

    Table 5 of Search-in-the-Chain counts reasoning steps by it.
    """
    found = filter(None, map(_HOPS.match, kinds.values()))
    return next((int(match[1]) for match in found), None)
