"""Exact match and F1 of answers, with the arithmetic of the datasets' official evaluation scripts."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from cotrail.common.answer_normalization import normalized
from cotrail.data.datasets.spec import RuleName, Scoring
from cotrail.evaluation.metrics import drop
from cotrail.faithfulness.tasks import VERDICTS

# Exact match and word overlap of two answers, as the official scripts of HotpotQA, MuSiQue and KILT compute them.
#
# The scripts: `hotpot_evaluate_v1.py` (hotpotqa/hotpot), which `2wikimultihop_evaluate_v1.1.py`
# (Alab-NII/2wikimultihop) follows, `evaluate_v1.0.py` (StonyBrookNLP/musique) and `kilt/eval_downstream.py`
# (facebookresearch/KILT).

_VERDICTS = {"yes", "no", "noanswer"}


def hotpotqa_scores(prediction: str, answer: str) -> drop.AnswerScores:
    """HotpotQA's scores: yes, no and noanswer score 0 against anything else, even if they share words."""
    predicted, gold = normalized(prediction), normalized(answer)
    if predicted != gold and not _VERDICTS.isdisjoint((predicted, gold)):
        return drop.NO_OVERLAP
    return _overlap(predicted, gold)


def musique_scores(prediction: str, answer: str) -> drop.AnswerScores:
    """MuSiQue's and SQuAD 2's scores: an answer without words matches another such answer, and nothing else."""
    predicted, gold = normalized(prediction), normalized(answer)
    if not predicted and not gold:
        return drop.FULL_OVERLAP
    return _overlap(predicted, gold)


def kilt_scores(prediction: str, answer: str) -> drop.AnswerScores:
    """KILT's scores: an empty prediction scores 0; other texts without words match exactly and overlap in nothing."""
    return _overlap(normalized(prediction), normalized(answer)) if prediction.strip() else drop.NO_OVERLAP


def _overlap(predicted: str, gold: str) -> drop.AnswerScores:
    if predicted and predicted == gold:
        return drop.FULL_OVERLAP
    em = float(predicted == gold)
    words, gold_words = predicted.split(), gold.split()
    if set(words).isdisjoint(gold_words):
        return drop.AnswerScores(em=em, f1=0.0, precision=0.0, recall=0.0)
    shared = (Counter(words) & Counter(gold_words)).total()
    precision, recall = shared / len(words), shared / len(gold_words)
    return drop.AnswerScores(
        em=em, f1=2 * precision * recall / (precision + recall), precision=precision, recall=recall
    )


# Accuracy of answers that are labels: yes/no (StrategyQA), true/false (INFOTABS), FEVER's two or three.


class Accuracy(Struct, frozen=True, kw_only=True):
    """Counts over `of` answers: right ones, and unclear ones, which are neither of the two words.

    Unclear answers are wrong. The adjusted accuracy of the released code of Rethinking with Retrieval counts them half.
    """

    right: int
    unclear: int
    of: int

    @property
    def share(self) -> float:
        """The accuracy, from 0 to 1."""
        return self.right / self.of

    @property
    def adjusted(self) -> float:
        """The adjusted accuracy, from 0 to 1."""
        return (self.right + self.unclear / 2) / self.of


def verdict_scores(prediction: str, answer: str) -> drop.AnswerScores:
    """Score 1 if the prediction is that label, apart from case and punctuation, else 0."""
    return drop.FULL_OVERLAP if normalized(prediction) == normalized(answer) else drop.NO_OVERLAP


def is_unclear(prediction: str, answer: str) -> bool:
    """Return whether the prediction is neither of the two words that answers can be; False for free-text answers."""
    words = next((words for words in VERDICTS.values() if normalized(answer) in words), None)
    return words is not None and normalized(prediction) not in words


def accuracy(judgements: Iterable[tuple[bool, bool]]) -> Accuracy:
    """The accuracy over answers; judgements: for each whether it is right, and whether it is unclear."""
    pairs = tuple(judgements)
    return Accuracy(right=sum(right for right, _ in pairs), unclear=sum(unclear for _, unclear in pairs), of=len(pairs))


ScoringRule = Callable[[str, str], drop.AnswerScores]
"""Scores a prediction against one published answer."""


def answer_scores(scoring: Scoring, prediction: str, answers: Sequence[str]) -> drop.AnswerScores | None:
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
    return drop.AnswerScores(
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


def span_scores(prediction: str, answer: str) -> drop.AnswerScores:
    """Score a generated text against a published answer of one or several spans, by DROP's rules."""
    return drop.drop_scores(drop.predicted_spans(prediction), drop.published_spans(answer))


_RULES: dict[RuleName, ScoringRule] = {
    "hotpotqa": hotpotqa_scores,
    "squad": musique_scores,
    "drop": span_scores,
    "kilt": kilt_scores,
    "label": verdict_scores,
}
