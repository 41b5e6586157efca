"""Guesses of what a model will write next; it checks several tokens in the time of one."""

from array import array
from collections.abc import Sequence

GRAMS = (3, 2)
"""How many tokens have to occur again for what followed them to be guessed, the most telling first."""

LONGEST_DRAFT = 5
"""Tokens of such a guess."""

LONGEST_PREDICTED = 32
"""Tokens of a guess that is what the model wrote before, see `chains`."""


def lookup(prompt: bytes, written: Sequence[int], longest: int = LONGEST_DRAFT) -> list[int]:
    """What followed the last tokens where they occurred last (prompt lookup decoding, Saxena 2023).

    prompt: its tokens, see `packed`.
    """
    text = prompt + packed(written)
    size = array("I").itemsize
    for gram in GRAMS:
        end = text[-gram * size :]
        found = text.rfind(end, 0, -size)
        while found > 0 and found % size:
            found = text.rfind(end, 0, found + len(end) - 1)
        if found >= 0 and len(text) > gram * size:
            return array("I", text[found + len(end) :][: longest * size]).tolist()
    return []


def packed(tokens: Sequence[int]) -> bytes:
    """Tokens as bytes, in which others are found fast."""
    return array("I", tokens).tobytes()
