"""Normalization of answers before they are compared, as in the official scripts of SQuAD, HotpotQA and MuSiQue.

Overlap of two texts: whether one contains the other, and ROUGE-L.
"""

import re
import string
from functools import lru_cache

from rapidfuzz.distance import LCSseq

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")

_MOST_CACHED = 64
"""Size of the cache of normalized answers: all metrics of a question compare the same few."""


@lru_cache(maxsize=_MOST_CACHED)
def normalized(answer: str) -> str:
    """Lower-case the answer, remove ASCII punctuation, then articles, and collapse white space.

    The order is that of the scripts and matters: punctuation goes first, so that "the-end" becomes "theend".
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


_WORD = re.compile("[a-z0-9]+")


def contained(short: str, long: str) -> bool:
    """Return whether the one text is a substring of the other, both normalized.

    Characters count, not words: "no" is contained in "I know". A text without words is contained in every text. The
    released code of Search-in-the-Chain compares its reader's answer with the model's in this way.
    """
    return normalized(short) in normalized(long)


def rouge_l(prediction: str, reference: str) -> float:
    """ROUGE-L (Lin 2004), from 0 to 1: F1 of the longest common subsequence of words, as rouge-score computes it.

    Words are runs of a-z and 0-9 after lower-casing, without stemming; texts in other scripts have none and score 0.
    rouge-score itself takes a gigabyte and minutes where a model wrote a long text.
    """
    predicted_words, words = _WORD.findall(prediction.lower()), _WORD.findall(reference.lower())
    shared = LCSseq.similarity(words, predicted_words)
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted_words), shared / len(words)
    return 2 * precision * recall / (precision + recall)
