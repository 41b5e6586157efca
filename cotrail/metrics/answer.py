"""Exact match and F1 of answers, with the arithmetic of the datasets' official evaluation scripts."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

from cotrail.errors import UnknownNameError

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_VERDICTS = {"yes", "no", "noanswer"}


class AnswerScores(Struct, frozen=True, kw_only=True):
    """How well an answer agrees with the published ones, each from 0 to 1."""

    em: float
    f1: float


def answer_scores(dataset: str, prediction: str, answers: Sequence[str]) -> AnswerScores | None:
    """The best exact match and the best F1 over the published answers; None where none is published."""
    f1 = _rule(dataset)
    if not answers:
        return None
    predicted = normalized(prediction)
    golds = [normalized(answer) for answer in answers]
    return AnswerScores(em=float(predicted in golds), f1=max(f1(predicted, gold) for gold in golds))


def normalized(answer: str) -> str:
    """Lower-cased, without ASCII punctuation and articles, single spaces between the words."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def hotpotqa_f1(predicted: str, gold: str) -> float:
    """F1 of normalized answers as HotpotQA has it: yes, no and noanswer score nothing against anything else."""
    if predicted != gold and not _VERDICTS.isdisjoint((predicted, gold)):
        return 0.0
    return _overlap(predicted.split(), gold.split())


def musique_f1(predicted: str, gold: str) -> float:
    """F1 of normalized answers as MuSiQue and SQuAD 2 have it: an answer without words agrees only with its like."""
    if not predicted or not gold:
        return float(predicted == gold)
    return _overlap(predicted.split(), gold.split())


def _overlap(predicted: list[str], gold: list[str]) -> float:
    shared = (Counter(predicted) & Counter(gold)).total()
    if shared == 0:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(gold)
    return 2 * precision * recall / (precision + recall)


_RULES: dict[str, Callable[[str, str], float]] = {
    "hotpotqa": hotpotqa_f1,
    "musique": musique_f1,
    "jsonl": musique_f1,
}


def _rule(dataset: str) -> Callable[[str, str], float]:
    if dataset not in _RULES:
        raise UnknownNameError(f"there is no scoring rule for {dataset!r}; there are: {', '.join(_RULES)}")
    return _RULES[dataset]
