"""The words in which two texts differ.

What two sequences share, in their order.

The work is bounded: by what both begin and end with, and by the number of items that differ between these, at most
`MOST_EDITS`. Sequences that differ in more share their beginning and their end alone.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from msgspec import Struct

MOST_EDITS = 200
"""The items that are taken out and put in to make one sequence of the other, as far as they are looked for."""

Places = list[tuple[int, int]]
"""Places in the first sequence, each with the place in the second one that has the same item."""


def shared_places(first: Sequence[str], second: Sequence[str]) -> Places:
    """The places of the items that both have, in their order."""
    shortest = min(len(first), len(second))
    begin = next((place for place in range(shortest) if first[place] != second[place]), shortest)
    rest = shortest - begin
    end = next((place for place in range(rest) if first[-1 - place] != second[-1 - place]), rest)
    middle = _matches(first[begin : len(first) - end], second[begin : len(second) - end])
    return [
        *((place, place) for place in range(begin)),
        *((begin + one, begin + other) for one, other in middle),
        *((len(first) - place, len(second) - place) for place in range(end, 0, -1)),
    ]


def _matches(first: Sequence[str], second: Sequence[str]) -> Places:
    """The longest common subsequence (Myers 1986); empty where more than `MOST_EDITS` items differ."""
    reached, history = {1: 0}, []
    for edits in range(min(len(first) + len(second), MOST_EDITS) + 1):
        history.append(dict(reached))
        for diagonal in range(-edits, edits + 1, 2):
            place = _next_place(reached, diagonal, edits)
            while _same(first, second, place, place - diagonal):
                place += 1
            reached[diagonal] = place
            if place >= len(first) and place - diagonal >= len(second):
                return list(_walked_back(history, place, diagonal))[::-1]
    return []


def _same(first: Sequence[str], second: Sequence[str], place: int, other: int) -> bool:
    return place < len(first) and other < len(second) and first[place] == second[other]


def _next_place(reached: dict[int, int], diagonal: int, edits: int) -> int:
    """Where a further item taken out of the first sequence, or put in from the second, leads on a diagonal."""
    below, above = reached.get(diagonal + 1, -1), reached.get(diagonal - 1, -1)
    inserts = diagonal == -edits or (diagonal != edits and above < below)
    return below if inserts else above + 1


def _walked_back(history: Sequence[dict[int, int]], place: int, diagonal: int) -> Iterator[tuple[int, int]]:
    """The places of the items that both have, the last one first."""
    for edits in range(len(history) - 1, -1, -1):
        start = _next_place(history[edits], diagonal, edits)
        yield from ((at, at - diagonal) for at in range(place - 1, start - 1, -1))
        inserted = start == history[edits].get(diagonal + 1, -1)
        place, diagonal = (start, diagonal + 1) if inserted else (start - 1, diagonal - 1)


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
