"""Accuracy of answers that are labels: yes/no (StrategyQA), true/false (INFOTABS), FEVER's two or three."""

from collections.abc import Iterable

from msgspec import Struct

from cotrail.common.answer_normalization import normalized
from cotrail.evaluation.metrics.em_f1 import FULL_OVERLAP, NO_OVERLAP, AnswerScores
from cotrail.faithfulness.tasks import VERDICTS


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


def verdict_scores(prediction: str, answer: str) -> AnswerScores:
    """Score 1 if the prediction is that label, apart from case and punctuation, else 0."""
    return FULL_OVERLAP if normalized(prediction) == normalized(answer) else NO_OVERLAP


def is_unclear(prediction: str, answer: str) -> bool:
    """Return whether the prediction is neither of the two words that answers can be; False for free-text answers."""
    words = next((words for words in VERDICTS.values() if normalized(answer) in words), None)
    return words is not None and normalized(prediction) not in words


def accuracy(judgements: Iterable[tuple[bool, bool]]) -> Accuracy:
    """The accuracy over answers; judgements: for each whether it is right, and whether it is unclear."""
    pairs = tuple(judgements)
    return Accuracy(right=sum(right for right, _ in pairs), unclear=sum(unclear for _, unclear in pairs), of=len(pairs))
