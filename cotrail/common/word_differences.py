"""The words in which two texts differ."""

import re
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from msgspec import Struct

from cotrail.common.shared_places import shared_places

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]\s*|\w+\s*|[^\w\s]\s*|\s+")
"""A word, a sign, or a letter of a script without spaces, with the space behind it."""


class Piece(Struct, frozen=True, kw_only=True):
    """A part of a text; alone: whether the other text doesn't have it."""

    text: str
    alone: bool = False


Pieces = tuple[Piece, ...]


def word_differences(first: str, second: str) -> tuple[Pieces, Pieces]:
    """Both texts in pieces, which together are the texts again; the work is bounded as that of `shared_places`."""
    ours, theirs = _WORD.findall(first), _WORD.findall(second)
    shared = shared_places([each.strip() for each in ours], [each.strip() for each in theirs])
    return _pieces(ours, {place for place, _ in shared}), _pieces(theirs, {place for _, place in shared})


def _pieces(words: Sequence[str], shared: set[int]) -> Pieces:
    """Neighbouring words that stand alone are one piece, without the space behind it."""
    parts: list[tuple[str, bool]] = []
    for alone, group in groupby(range(len(words)), key=lambda place: place not in shared):
        text = "".join(words[place] for place in group)
        kept = text.rstrip() if alone else text
        parts += [(kept, alone), (text[len(kept) :], False)]
    merged = groupby(filter(itemgetter(0), parts), key=itemgetter(1))
    return tuple(Piece(text="".join(text for text, _ in group), alone=alone) for alone, group in merged)
