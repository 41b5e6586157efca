"""Exact match and F1 of answers, with the arithmetic of the datasets' official evaluation scripts."""

from collections.abc import Callable, Sequence

from cotrail.errors import UnknownNameError
from cotrail.evaluation.metrics.accuracy import verdict_scores
from cotrail.evaluation.metrics.drop import drop_scores, predicted_spans, published_spans
from cotrail.evaluation.metrics.word_overlap import AnswerScores, hotpotqa_scores, musique_scores

ScoringRule = Callable[[str, str], AnswerScores]
"""How well a prediction agrees with one published answer."""


def answer_scores(dataset: str, prediction: str, answers: Sequence[str]) -> AnswerScores | None:
    """The best agreement with a published answer, each score by itself; None where no answer is published.

    Of StrategyQA and INFOTABS the exact match is the accuracy; of TempQuestions it is SQuAD's, as MuSiQue's is.
    By DROP's rules (IIRC, and `ircot`, which runs on processed files were once submitted as) the scores are those of
    the one answer that agrees best.
    """
    agreement = _rule(dataset)
    if not answers:
        return None
    scores = [agreement(prediction, answer) for answer in answers]
    if agreement is span_scores:
        return max(scores)
    return AnswerScores(
        em=max(each.em for each in scores),
        f1=max(each.f1 for each in scores),
        precision=max(each.precision for each in scores),
        recall=max(each.recall for each in scores),
    )


def tuning_f1(prediction: str, answers: Sequence[str]) -> float | None:
    """The F1 that the released code of IRCoT chooses K and M by, for every dataset: DROP's, with the main answer alone.

    None where no answer is published.
    """
    return span_scores(prediction, answers[0]).f1 if answers else None


def span_scores(prediction: str, answer: str) -> AnswerScores:
    """How well a generated text agrees with a published answer of one or several spans, by DROP's rules."""
    return drop_scores(predicted_spans(prediction), published_spans(answer))


_RULES: dict[str, ScoringRule] = {
    "hotpotqa": hotpotqa_scores,
    "2wikimultihopqa": hotpotqa_scores,
    "musique": musique_scores,
    "iirc": span_scores,
    "strategyqa": verdict_scores,
    "strategyqa-facts": verdict_scores,
    "tempquestions": musique_scores,
    "infotabs": verdict_scores,
    "ircot": span_scores,
    "jsonl": musique_scores,
}


def _rule(dataset: str) -> ScoringRule:
    if dataset not in _RULES:
        raise UnknownNameError(f"there is no scoring rule for {dataset!r}; there are: {', '.join(_RULES)}")
    return _RULES[dataset]
