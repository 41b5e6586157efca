"""Normalization of answers before they are compared, as in the official scripts of SQuAD, HotpotQA and MuSiQue."""

import re
import string
from functools import lru_cache

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
