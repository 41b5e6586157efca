"""Exact match and F1 of answers, with the arithmetic of the datasets' official evaluation scripts."""

from collections.abc import Callable, Sequence

from cotrail.data.datasets.scoring import RuleName, Scoring
from cotrail.evaluation.metrics.accuracy import verdict_scores
from cotrail.evaluation.metrics.drop import drop_scores, predicted_spans, published_spans
from cotrail.evaluation.metrics.em_f1 import AnswerScores
from cotrail.evaluation.metrics.word_overlap import hotpotqa_scores, kilt_scores, musique_scores

ScoringRule = Callable[[str, str], AnswerScores]
"""Scores a prediction against one published answer."""


def answer_scores(scoring: Scoring, prediction: str, answers: Sequence[str]) -> AnswerScores | None:
    """Score a prediction by the best match with any published answer, by the dataset's rule; None without answers.

    Each score is maximised by itself, as the scripts do. By DROP's rules, all scores are those of the single best
    answer instead. The exact match of labels is the accuracy.
    """
    agreement = _RULES[scoring.rule]
    if not answers:
        return None
    scores = [agreement(prediction, answer) for answer in answers]
    if agreement is span_scores or len(scores) == 1:
        return max(scores)
    return AnswerScores(
        em=max(each.em for each in scores),
        f1=max(each.f1 for each in scores),
        precision=max(each.precision for each in scores),
        recall=max(each.recall for each in scores),
    )


def tuning_f1(prediction: str, answers: Sequence[str]) -> float | None:
    """The F1 by which the released code of IRCoT chooses K and M for every dataset: DROP's, on the first answer alone.

    None where no answer is published.
    """
    return span_scores(prediction, answers[0]).f1 if answers else None


def span_scores(prediction: str, answer: str) -> AnswerScores:
    """Score a generated text against a published answer of one or several spans, by DROP's rules."""
    return drop_scores(predicted_spans(prediction), published_spans(answer))


_RULES: dict[RuleName, ScoringRule] = {
    "hotpotqa": hotpotqa_scores,
    "squad": musique_scores,
    "drop": span_scores,
    "kilt": kilt_scores,
    "label": verdict_scores,
}
