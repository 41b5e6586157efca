"""Scores of invented questions, for the tests of metrics and tables."""

from collections.abc import Iterable, Sequence

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.data.datasets.registry import scoring_of
from cotrail.data.datasets.spec import Scoring
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.evaluation.metrics.metric import QuestionScores, ScoredQuestion
from cotrail.evaluation.metrics.supporting_paragraphs import support_scores


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
    return {name: metric.value(question) for name, metric in METRICS.items()}


def paragraph_recall(collected: Iterable[Paragraph], gold: Sequence[GoldParagraph]) -> float | None:
    """Share of the gold paragraphs that were collected; None where none are published."""
    scores = support_scores(Scoring("squad", any_script=True), collected, gold)
    return None if scores is None else scores.recall
