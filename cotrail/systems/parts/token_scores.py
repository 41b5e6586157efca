"""How likely a part of a text was to the model that wrote it."""

import math
from itertools import accumulate

from cotrail.core.results import Generated


def mean_score(written: Generated, start: int, end: int) -> float | None:
    """The mean log probability of the tokens that have a part of the text from `start` to before `end`.

    None where there are no such tokens.
    """
    offset = max(0, written.raw.find(written.text))
    ends = accumulate(len(text) for text, _ in written.tokens)
    scores = [
        score
        for (text, score), behind in zip(written.tokens, ends, strict=True)
        if behind > start + offset and behind - len(text) < end + offset
    ]
    return math.fsum(scores) / len(scores) if scores else None
