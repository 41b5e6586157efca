"""Scoring of a question: its answer, and the paragraphs that were collected for it."""

from collections.abc import Sequence

from cotrail.core.paragraphs import Paragraph
from cotrail.core.questions import GoldParagraph
from cotrail.data.datasets.scoring import Scoring
from cotrail.evaluation.metrics.answer_scores import answer_scores, tuning_f1
from cotrail.evaluation.metrics.cover_em import cover_em, cover_em_words
from cotrail.evaluation.metrics.long_answers import long_answer_score
from cotrail.evaluation.metrics.question_scores import QuestionScores
from cotrail.evaluation.metrics.supporting_paragraphs import answer_support_recall, support_scores


def question_scores(
    scoring: Scoring,
    answer: str | None,
    answers: Sequence[str],
    collected: Sequence[Paragraph],
    gold: Sequence[GoldParagraph],
    *,
    pinned: GoldParagraph | None = None,
    stated: str = "",
    answering: bool = True,
) -> QuestionScores:
    """Score a question; an `answer` of None, that of an unfinished question, scores 0.

    pinned: the passage that the question is about, see `support_scores`.
    stated: the span that an answer of several sentences states, if any: exact match and F1 are its.
    answering: whether the run has answers; an empty one of a run that has none isn't scored.
    """
    said = answer or ""
    compared = answers if answering or said else ()
    agreement = answer_scores(scoring, stated or said, compared)
    support = support_scores(scoring, collected, gold, pinned)

    def earned(score: float | None) -> float | None:
        return 0.0 if answer is None and score is not None else score

    return QuestionScores(
        answer_em=None if agreement is None else earned(agreement.em),
        answer_f1=None if agreement is None else earned(agreement.f1),
        tuning_f1=earned(tuning_f1(stated or said, compared)),
        cover_em=earned(cover_em(said, compared)),
        cover_em_words=earned(cover_em_words(said, compared)),
        rouge_l=earned(long_answer_score(scoring, said, compared)),
        paragraph_recall=None if support is None else support.recall,
        paragraph_precision=None if support is None else support.precision,
        paragraph_f1=None if support is None else support.f1,
        paragraph_em=None if support is None else support.em,
        title_recall=None if support is None else support.title_recall,
        answer_support_recall=answer_support_recall(collected, answers),
        paragraphs_collected=len(collected),
    )
