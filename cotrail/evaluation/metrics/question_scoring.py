"""Scoring of a question: its answer, and the paragraphs that were collected for it."""

from collections.abc import Sequence

from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import GoldParagraph
from cotrail.evaluation.metrics.answer_scores import answer_scores, tuning_f1
from cotrail.evaluation.metrics.question_scores import QuestionScores
from cotrail.evaluation.metrics.supporting_paragraphs import answer_support_recall, support_scores


def question_scores(
    dataset: str,
    answer: str | None,
    answers: Sequence[str],
    collected: Sequence[Paragraph],
    gold: Sequence[GoldParagraph],
    *,
    pinned: GoldParagraph | None = None,
) -> QuestionScores:
    """Score a question; an `answer` of None, that of an unfinished question, scores 0.

    pinned: the passage that the question is about, see `support_scores`.
    """
    agreement = answer_scores(dataset, answer or "", answers)
    tuning = tuning_f1(answer or "", answers)
    support = support_scores(dataset, collected, gold, pinned)
    worth = 0.0 if answer is None else 1.0
    return QuestionScores(
        answer_em=None if agreement is None else agreement.em * worth,
        answer_f1=None if agreement is None else agreement.f1 * worth,
        tuning_f1=None if tuning is None else tuning * worth,
        support_recall=None if support is None else support.recall,
        support_precision=None if support is None else support.precision,
        support_f1=None if support is None else support.f1,
        support_em=None if support is None else support.em,
        title_recall=None if support is None else support.title_recall,
        answer_support_recall=answer_support_recall(collected, answers),
        paragraphs_collected=len(collected),
    )
