"""Scores of invented questions, for the tests of metrics and tables."""

from collections.abc import Sequence

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.registry import scoring_of
from cotrail.evaluation.metrics import question_scores as scoring
from cotrail.evaluation.metrics.metric import QuestionScores, ScoredQuestion


def question_scores(
    dataset: str,
    answer: str | None,
    answers: Sequence[str],
    collected: Sequence[Paragraph],
    gold: Sequence[GoldParagraph],
    *,
    stated: str = "",
    answering: bool = True,
) -> QuestionScores:
    """The scores of a question of that dataset."""
    question = ScoredQuestion(
        scoring=scoring_of(dataset),
        answer=answer,
        answers=answers,
        collected=collected,
        gold=gold,
        stated=stated,
        answering=answering,
    )
    return scoring.question_scores(question)
