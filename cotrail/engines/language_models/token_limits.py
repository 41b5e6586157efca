"""The limits of a prompt's pieces in tokens, and of all of them together: what is cut (Search-R1, `generation.py`)."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import groupby

from cotrail.core.generation import Cut
from cotrail.core.prompts import Piece, Prompt

CountTokens = Callable[[str], int]


def limited(prompt: Prompt, count_tokens: CountTokens) -> tuple[Cut, ...]:
    """What is cut of the prompt's pieces: first each to its limit, then all to the prompt's window.

    Tokens are counted piece by piece, so that a later prompt with the same pieces is cut alike, and the marks that a
    chat template sets between turns don't count.
    """
    if prompt.window is None and all(_limit(piece) is None for piece in prompt.pieces):
        return ()
    kept = {cut.place: cut for cut in _to_own_limits(prompt, count_tokens)}
    if prompt.window is not None:
        kept |= {cut.place: cut for cut in _to_window(prompt, kept, prompt.window, count_tokens)}
    return tuple(kept[place] for place in sorted(kept))


def _limit(piece: Piece) -> int | None:
    return getattr(piece, "tokens", None)


def _to_own_limits(prompt: Prompt, count_tokens: CountTokens) -> Iterator[Cut]:
    place = 0
    for turn in prompt.turns:
        for limit, group in groupby(turn.pieces, _limit):
            left = limit
            for piece in group:
                if left is not None:
                    kept = _most_characters(piece.text, left, count_tokens)
                    left -= count_tokens(piece.text[:kept])
                    if kept < len(piece.text):
                        yield Cut(place, 0, kept)
                place += 1


def _to_window(prompt: Prompt, cut: dict[int, Cut], window: int, count_tokens: CountTokens) -> Iterator[Cut]:
    left = window
    for place, piece in reversed(list(enumerate(prompt.pieces))):
        end = cut[place].end if place in cut else len(piece.text)
        text = piece.text[:end]
        tokens = count_tokens(text)
        if tokens > left:
            yield Cut(place, end - _most_characters(text, left, count_tokens, from_end=True), end)
        left = max(left - tokens, 0)


def _most_characters(text: str, limit: int, count_tokens: CountTokens, *, from_end: bool = False) -> int:
    """How many characters of a text, from its beginning or its end, have no more tokens than the limit."""
    if limit <= 0:
        return 0

    def tokens(number: int) -> int:
        return count_tokens(text[len(text) - number :] if from_end else text[:number])

    if tokens(len(text)) <= limit:
        return len(text)
    number = max(bisect_right(range(len(text) + 1), limit, key=tokens) - 1, 0)
    # A longer piece of a text has hardly ever fewer tokens, but the search may have met one that has.
    while tokens(number) > limit:
        number -= 1
    return number
