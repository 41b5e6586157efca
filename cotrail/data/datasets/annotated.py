"""Questions with everything else that their dataset annotates, as demonstrations need it."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import GoldParagraph, Question

ParagraphLookup = Callable[[Sequence[str]], Mapping[str, Paragraph]]
"""Looks up paragraphs of a corpus by their ids; missing ones are left out."""

YES_OR_NO = {True: "yes", False: "no"}
"""The answers of yes/no questions."""


class AnnotatedQuestion(Struct, frozen=True, kw_only=True):
    """A question and the rest of its record.

    distractors: the paragraphs of its context that are neither gold nor pinned; empty where the dataset has none.
    chain: the annotated sentences that lead to the answer, the last one stating it; empty where there are none.
    """

    question: Question
    distractors: tuple[GoldParagraph, ...] = ()
    chain: tuple[str, ...] = ()


class QuestionRecord(Struct, frozen=True, kw_only=True):
    """A question as a file holds it.

    place: its position, e.g. `dev.jsonl, line 3`; raw: its bytes, a valid record of the same format.
    """

    place: str
    raw: bytes
    annotated: AnnotatedQuestion


class ContextParagraph(Struct, frozen=True):
    """A paragraph of a question's context, as MuSiQue's files and those of IRCoT's authors have it."""

    title: str
    paragraph_text: str
    is_supporting: bool = False

    def flagged(self) -> tuple[GoldParagraph, bool]:
        """The paragraph, and whether it supports the answer."""
        return GoldParagraph(title=self.title, text=self.paragraph_text), self.is_supporting


def parted(
    context: Iterable[tuple[GoldParagraph, bool]],
) -> tuple[tuple[GoldParagraph, ...], tuple[GoldParagraph, ...]]:
    """Split a context into supporting and other paragraphs, each once and in order.

    A paragraph that occurs twice is supporting if either occurrence is.
    """
    paragraphs: dict[GoldParagraph, bool] = {}
    for paragraph, supporting in context:
        paragraphs[paragraph] = paragraphs.get(paragraph, False) or supporting
    return (
        tuple(paragraph for paragraph, supporting in paragraphs.items() if supporting),
        tuple(paragraph for paragraph, supporting in paragraphs.items() if not supporting),
    )


def id_of(*texts: str) -> str:
    """The id of a question that is published without one: the SHA-256 of its text, and of what else tells it apart."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def accepted_answers(names: Iterable[str]) -> tuple[str, ...]:
    """Answers any of which is right: stripped, each once, and without empty ones."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, names))))


def spans_as_answer(spans: Sequence[str]) -> str:
    """An answer as questions hold it: the text of a single span, or a JSON list of several."""
    return spans[0] if len(spans) == 1 else msgspec.json.encode(spans).decode()
