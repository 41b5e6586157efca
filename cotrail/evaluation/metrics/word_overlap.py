"""Exact match and word overlap of two answers, as the official scripts of HotpotQA, MuSiQue and KILT compute them.

The scripts: `hotpot_evaluate_v1.py` (hotpotqa/hotpot), which `2wikimultihop_evaluate_v1.1.py` (Alab-NII/2wikimultihop)
follows, `evaluate_v1.0.py` (StonyBrookNLP/musique) and `kilt/eval_downstream.py`
(facebookresearch/KILT).
"""

from collections import Counter

from cotrail.common.answer_normalization import normalized
from cotrail.evaluation.metrics.em_f1 import FULL_OVERLAP, NO_OVERLAP, AnswerScores

_VERDICTS = {"yes", "no", "noanswer"}


def hotpotqa_scores(prediction: str, answer: str) -> AnswerScores:
    """HotpotQA's scores: yes, no and noanswer score 0 against anything else, even if they share words."""
    predicted, gold = normalized(prediction), normalized(answer)
    if predicted != gold and not _VERDICTS.isdisjoint((predicted, gold)):
        return NO_OVERLAP
    return _overlap(predicted, gold)


def musique_scores(prediction: str, answer: str) -> AnswerScores:
    """MuSiQue's and SQuAD 2's scores: an answer without words matches another such answer, and nothing else."""
    predicted, gold = normalized(prediction), normalized(answer)
    if not predicted and not gold:
        return FULL_OVERLAP
    return _overlap(predicted, gold)


def kilt_scores(prediction: str, answer: str) -> AnswerScores:
    """KILT's scores: an empty prediction scores 0; other texts without words match exactly and overlap in nothing."""
    return _overlap(normalized(prediction), normalized(answer)) if prediction.strip() else NO_OVERLAP


def _overlap(predicted: str, gold: str) -> AnswerScores:
    if predicted and predicted == gold:
        return FULL_OVERLAP
    em = float(predicted == gold)
    words, gold_words = predicted.split(), gold.split()
    if set(words).isdisjoint(gold_words):
        return AnswerScores(em=em, f1=0.0, precision=0.0, recall=0.0)
    shared = (Counter(words) & Counter(gold_words)).total()
    precision, recall = shared / len(words), shared / len(gold_words)
    return AnswerScores(em=em, f1=2 * precision * recall / (precision + recall), precision=precision, recall=recall)
