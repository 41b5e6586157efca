"""Speculative decoding by prompt lookup: drafts of the next tokens, which the model verifies in a single pass."""

from array import array
from collections.abc import Sequence

GRAMS = (3, 2)
"""Lengths of the n-grams that must recur for a draft; the longer is tried first, as it is more reliable."""

LONGEST_DRAFT = 5
"""Tokens of a draft from prompt lookup."""

LONGEST_PREDICTED = 32
"""Tokens of a draft that the model wrote before, see `continuations`."""


def lookup(prompt: bytes, tokens: Sequence[int], longest: int = LONGEST_DRAFT) -> list[int]:
    """The tokens that followed the last n-gram where it occurred last (prompt lookup decoding, Saxena 2023).

    prompt: its tokens, see `packed`.
    """
    text = prompt + packed(tokens)
    size = array("I").itemsize
    for gram in GRAMS:
        end = text[-gram * size :]
        place = text.rfind(end, 0, -size)
        # A match of bytes may begin within a token; only aligned ones are matches of tokens.
        while place > 0 and place % size:
            place = text.rfind(end, 0, place + len(end) - 1)
        if place >= 0 and len(text) > gram * size:
            return array("I", text[place + len(end) :][: longest * size]).tolist()
    return []


def packed(tokens: Sequence[int]) -> bytes:
    """Tokens as bytes, in which byte search finds n-grams fast."""
    return array("I", tokens).tobytes()
