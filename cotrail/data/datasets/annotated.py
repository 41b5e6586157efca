"""Questions with everything else that their dataset annotates, as demonstrations need it."""

from collections.abc import Iterable

from msgspec import Struct

from cotrail.core.questions import GoldParagraph, Question


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
