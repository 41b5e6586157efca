"""Words that a language model read and wrote for a question (table 6 of Search-in-the-Chain)."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from msgspec import Struct

from cotrail.core.prompts import Piece, Prompt, Written


class WordCounts(Struct, frozen=True, kw_only=True):
    """Words of a question's calls of the language model.

    read: the first prompt, and what each further call added to it, without what the model itself had written.
    read_again: all of every call's prompt. written: by the model.
    """

    read: int
    read_again: int
    written: int


def words_of(prompts: Sequence[Prompt], written: Sequence[str]) -> WordCounts:
    """Count the words of a question's prompts, in the order of the calls, and of what the model wrote."""
    pieces = [tuple(prompt.pieces) for prompt in prompts]
    new = [piece for before, now in pairwise([(), *pieces]) for piece in _added(before, now)]
    return WordCounts(
        read=sum(_words(piece.text) for piece in new if not isinstance(piece, Written)),
        read_again=sum(_words(piece.text) for prompt in pieces for piece in prompt),
        written=sum(map(_words, written)),
    )


def _added(before: Sequence[Piece], now: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces behind those with which both prompts begin."""
    shared = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(before, now, strict=False)))
    yield from now[shared:]


def _words(text: str) -> int:
    return len(text.split())
