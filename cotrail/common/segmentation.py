"""Sentences of a text as the library sentencex cuts it, in time linear in the text."""

import re
from collections.abc import Iterator
from itertools import accumulate, pairwise

from sentencex import segment

WINDOW_CHARACTERS = 10_000
"""Characters that sentencex is given at once: its time is quadratic in the number of quotation marks.

Texts up to this length are cut exactly as by sentencex alone; in longer ones no sentence has more characters."""

_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f](?=\.)")
"""White space before a full stop at which sentencex panics where a capital letter stands before it."""


def segments(text: str) -> Iterator[str]:
    """The text in sentences, each with the white space behind it; joined they are the text again."""
    start = 0
    while start < len(text):
        window = text[start : start + WINDOW_CHARACTERS]
        ends = segment_ends(window)
        if start + len(window) < len(text) and len(ends) > 1:
            ends.pop()  # What follows the window decides where its last sentence ends.
        yield from (window[one:other] for one, other in pairwise([0, *ends]))
        start += ends[-1]


def segment_ends(text: str) -> list[int]:
    """The places where sentencex ends the sentences of a text, up to its length; none where it is empty."""
    return list(accumulate(map(len, segment("en", _WIDE_SPACE.sub(" ", text)))))
