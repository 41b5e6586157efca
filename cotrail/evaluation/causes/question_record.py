"""What the causes of a wrong answer are derived from: a question as its steps left it."""

from functools import cached_property
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.causes.names_in_texts import Scene

MOST_CHARACTERS, MOST_SENTENCES = 40_000, 1_000
"""Of each text, and of a chain, that the rules read: what stands behind isn't looked at."""


class FoundParagraph(Struct, frozen=True, kw_only=True):
    """A paragraph in a search's result: the step, and its rank there, from 1."""

    paragraph: Paragraph
    step: int
    rank: int


class SeenParagraph(Struct, frozen=True, kw_only=True):
    """A paragraph that a model saw; text: as much of it as was shown, its title included."""

    paragraph: Paragraph
    step: int
    text: str


class Judgement(Struct, frozen=True, kw_only=True):
    """An entailment step: how probably a paragraph entails and contradicts a sentence."""

    sentence: str
    paragraph: Paragraph
    step: int
    entailment: float
    contradiction: float

    @property
    def contradicts(self) -> bool:
        """Whether contradiction is the likeliest of the three."""
        return self.contradiction > max(self.entailment, 1 - self.entailment - self.contradiction)


class QuestionRecord(Struct, frozen=True, kw_only=True, dict=True):
    """A question, what its dataset publishes of it, and what its run did.

    scoring: by which its paragraphs and answers are compared.
    answers: the published ones; gold, pinned: as of `Question`.
    right: whether the answer is right by the dataset's own metric.
    answer: as it was given; stated: the span that an answer of several sentences states, if any.
    sentences: the question's chain of thought; reading: the sentences of the reader's own.
    searches: their number; found: what they found, in order; seen: what was in prompts, and what was read by extractors
        and entailers, in order.
    ended_by: see `cotrail.core.history`; trouble: why there is no answer, where there is none.
    unread: how many steps this version can't read.
    """

    question: str
    scoring: Scoring
    answers: tuple[str, ...]
    gold: tuple[GoldParagraph, ...] = ()
    pinned: GoldParagraph | None = None
    right: bool = False
    answer: str = ""
    stated: str = ""
    sentences: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    searches: int = 0
    found: tuple[FoundParagraph, ...] = ()
    seen: tuple[SeenParagraph, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    ended_by: str = ""
    trouble: str = ""
    unread: int = 0

    @cached_property
    def scene(self) -> Scene:
        """What its answers are given to: the question, and the gold paragraphs and those that were seen."""
        return Scene(self.question, (*self.gold, *dict.fromkeys(each.paragraph for each in self.seen)))

    @property
    def short(self) -> str:
        """The answer as short as it is stated."""
        return self.stated or self.answer

    @property
    def said(self) -> tuple[str, ...]:
        """All that was written for the answer: the chain, the reader's own and the answer."""
        return (*self.sentences, *self.reading, self.answer)


def bounded(record: QuestionRecord) -> QuestionRecord:
    """The question with the beginning of what is longer than the rules read."""
    return replace(
        record,
        question=_cut(record.question),
        answers=tuple(map(_cut, record.answers)),
        gold=tuple(map(_beginning, record.gold)),
        pinned=None if record.pinned is None else _beginning(record.pinned),
        answer=_cut(record.answer),
        stated=_cut(record.stated),
        sentences=tuple(map(_cut, record.sentences[:MOST_SENTENCES])),
        reading=tuple(map(_cut, record.reading[:MOST_SENTENCES])),
        found=tuple(replace(each, paragraph=_beginning(each.paragraph)) for each in record.found),
        seen=tuple(replace(each, paragraph=_beginning(each.paragraph), text=_cut(each.text)) for each in record.seen),
        judgements=tuple(replace(each, paragraph=_beginning(each.paragraph)) for each in record.judgements),
    )


P = TypeVar("P", Paragraph, GoldParagraph)


def _beginning(paragraph: P) -> P:
    short = len(paragraph.text) <= MOST_CHARACTERS
    return paragraph if short else replace(paragraph, text=_cut(paragraph.text))


def _cut(text: str) -> str:
    return text[:MOST_CHARACTERS]
