"""A question with all that its dataset gives around it, as a demonstration needs it."""

from collections.abc import Iterable

from msgspec import Struct

from cotrail.core.questions import GoldParagraph, Question


class AnnotatedQuestion(Struct, frozen=True, kw_only=True):
    """A question and what its record holds besides.

    distractors: the paragraphs of its context that are neither gold nor pinned; empty where the dataset has none.
    chain: the sentences that lead to the answer, the last one stating it; empty where nobody wrote any.
    """

    question: Question
    distractors: tuple[GoldParagraph, ...] = ()
    chain: tuple[str, ...] = ()


class QuestionRecord(Struct, frozen=True, kw_only=True):
    """A question as a file holds it.

    place: where it is, e.g. `dev.jsonl, line 3`; raw: its bytes there, which make a record of the same format.
    """

    place: str
    raw: bytes
    annotated: AnnotatedQuestion


def parted(
    context: Iterable[tuple[GoldParagraph, bool]],
) -> tuple[tuple[GoldParagraph, ...], tuple[GoldParagraph, ...]]:
    """The supporting paragraphs and the others, each once and in order; what supports anywhere supports."""
    paragraphs: dict[GoldParagraph, bool] = {}
    for paragraph, supporting in context:
        paragraphs[paragraph] = paragraphs.get(paragraph, False) or supporting
    return (
        tuple(paragraph for paragraph, supporting in paragraphs.items() if supporting),
        tuple(paragraph for paragraph, supporting in paragraphs.items() if not supporting),
    )
