"""A question's scores, and their means over a run."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from msgspec import Struct

from cotrail.metrics.answer import answer_scores
from cotrail.metrics.support import support_recall
from cotrail.paragraphs import Paragraph
from cotrail.questions import GoldParagraph

DEFINITIONS = {
    "answer_em": "share of the answers that equal a published one, both normalized",
    "answer_f1": "mean word overlap of the answer with the nearest published one",
    "support_recall": "mean share of a question's gold paragraphs that were collected",
    "paragraphs_collected": "mean number of paragraphs collected for a question",
}
"""What each metric is, for a reader; the names are those of `QuestionScores`."""

CAVEAT = (
    "EM, F1 and recall are means over the questions that publish what they need; "
    "a question without an answer counts 0 for EM and F1, and for recall with what it has collected."
)


class QuestionScores(Struct, frozen=True, kw_only=True):
    """The scores of one question; None where the dataset publishes nothing to compare with."""

    answer_em: float | None
    answer_f1: float | None
    support_recall: float | None
    paragraphs_collected: int


def question_scores(
    dataset: str,
    answer: str | None,
    answers: Sequence[str],
    collected: Sequence[Paragraph],
    gold: Sequence[GoldParagraph],
) -> QuestionScores:
    """The scores of a question; an `answer` of None is that of an unfinished one, which scores 0 for it."""
    agreement = answer_scores(dataset, answer or "", answers)
    worth = 0.0 if answer is None else 1.0
    return QuestionScores(
        answer_em=None if agreement is None else agreement.em * worth,
        answer_f1=None if agreement is None else agreement.f1 * worth,
        support_recall=support_recall(collected, gold),
        paragraphs_collected=len(collected),
    )


def means(scores: Iterable[QuestionScores]) -> dict[str, float | None]:
    """The mean of each metric over the questions that have it; None where none has."""
    rows = tuple(scores)
    return {name: _mean(getattr(row, name) for row in rows) for name in DEFINITIONS}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
