"""A question of HotpotQA as published, with its paragraphs; 2WikiMultihopQA's have the same form."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from cotrail.common.json_files import decode
from cotrail.core.paragraphs import joined
from cotrail.core.questions import GoldParagraph, Question, named
from cotrail.data.datasets.spec import AnnotatedQuestion, parted
from cotrail.errors import CorpusError

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
