"""Exact match and F1 of answers, with the arithmetic of the datasets' official evaluation scripts."""

from collections.abc import Callable, Sequence

from cotrail.common.nearest import unknown
from cotrail.errors import UnknownNameError
from cotrail.evaluation.metrics.accuracy import verdict_scores
from cotrail.evaluation.metrics.drop import drop_scores, predicted_spans, published_spans
from cotrail.evaluation.metrics.word_overlap import AnswerScores, hotpotqa_scores, kilt_scores, musique_scores

ScoringRule = Callable[[str, str], AnswerScores]
"""Scores a prediction against one published answer."""


def answer_scores(dataset: str, prediction: str, answers: Sequence[str]) -> AnswerScores | None:
    """Score a prediction by the best match with any published answer; None where none is published.

    Each score is maximised by itself, as the scripts do. By DROP's rules, all scores are those of the single best
    answer instead (IIRC, and `ircot`, the dataset name of runs on processed files in earlier versions). The exact match
    of StrategyQA, INFOTABS and FEVER is the accuracy; that of TempQuestions is SQuAD's, like MuSiQue's,
    and that of zsRE, T-REx and ELI5 is KILT's.
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
    """The F1 by which the released code of IRCoT chooses K and M for every dataset: DROP's, on the first answer alone.

    None where no answer is published.
    """
    return span_scores(prediction, answers[0]).f1 if answers else None


def span_scores(prediction: str, answer: str) -> AnswerScores:
    """Score a generated text against a published answer of one or several spans, by DROP's rules."""
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
    "zsre": kilt_scores,
    "trex": kilt_scores,
    "fever": verdict_scores,
    "eli5": kilt_scores,
    "ircot": span_scores,
    "jsonl": musique_scores,
}


def _rule(dataset: str) -> ScoringRule:
    if dataset not in _RULES:
        raise UnknownNameError(unknown("scoring rule for", dataset, _RULES))
    return _RULES[dataset]
