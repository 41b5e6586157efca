"""Normalization of answers before they are compared, as in the official scripts of SQuAD, HotpotQA and MuSiQue."""

import re
import string

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalized(answer: str) -> str:
    """Lower-cased, without ASCII punctuation and articles, single spaces between the words."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())
