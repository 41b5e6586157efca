"""Scoring of a question: its answer, and the paragraphs that were collected for it."""

from collections.abc import Sequence

from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import GoldParagraph
from cotrail.evaluation.metrics.answer_scores import answer_scores, tuning_f1
from cotrail.evaluation.metrics.cover_em import cover_em, cover_em_words
from cotrail.evaluation.metrics.long_answers import long_answer_score
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
    said = answer or ""
    agreement = answer_scores(dataset, said, answers)
    support = support_scores(dataset, collected, gold, pinned)

    def earned(score: float | None) -> float | None:
        return 0.0 if answer is None and score is not None else score

    return QuestionScores(
        answer_em=None if agreement is None else earned(agreement.em),
        answer_f1=None if agreement is None else earned(agreement.f1),
        tuning_f1=earned(tuning_f1(said, answers)),
        cover_em=earned(cover_em(said, answers)),
        cover_em_words=earned(cover_em_words(said, answers)),
        rouge_l=earned(long_answer_score(dataset, said, answers)),
        support_recall=None if support is None else support.recall,
        support_precision=None if support is None else support.precision,
        support_f1=None if support is None else support.f1,
        support_em=None if support is None else support.em,
        title_recall=None if support is None else support.title_recall,
        answer_support_recall=answer_support_recall(collected, answers),
        paragraphs_collected=len(collected),
    )
