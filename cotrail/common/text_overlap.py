"""Overlap of two texts: whether one contains the other, and ROUGE-L."""

from functools import cache
from typing import TYPE_CHECKING

from cotrail.common.answer_normalization import normalized

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer


def contained(short: str, long: str) -> bool:
    """Return whether the one text is a substring of the other, both normalized.

    Characters count, not words: "no" is contained in "I know". A text without words is contained in every text. The
    released code of Search-in-the-Chain compares its reader's answer with the model's in this way.
    """
    return normalized(short) in normalized(long)


def rouge_l(prediction: str, reference: str) -> float:
    """ROUGE-L (Lin 2004), from 0 to 1: F1 of the longest common subsequence of words, as rouge-score computes it.

    Words are runs of a-z and 0-9 after lower-casing, without stemming; texts in other scripts have none and score 0.
    The time grows with the product of the two lengths.
    """
    return float(_scorer().score(reference, prediction)["rougeL"].fmeasure)


@cache
def _scorer() -> "RougeScorer":
    # The import takes a second, since it brings nltk along, and few runs need it.
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"])
