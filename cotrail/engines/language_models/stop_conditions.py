"""Stop conditions: where a generation ends, and what is kept of its text."""

import re
from collections.abc import Callable

from cotrail.common.sentence_boundaries import SentenceStop, first_sentence
from cotrail.core.generation import Until

STOP_STRINGS: dict[Until, tuple[str, ...]] = {
    "sentence": (),
    "line": ("\n",),
    "chain": ("\nQ:", "\nWikipedia Title:"),
    "end": (),
}
"""Stop strings that a server can apply by itself. The other conditions depend on the whole text or on what stands
before."""

_NEXT = re.compile(
    # A line above a further hypothesis is the table that the hypothesis is about, unless the line ends the chain.
    r"\n[^\S\n]*\n(?![^\n]*answer is)[^\n]+\n\s*Question:|(?:\A|\n)\s*(?:Q|Question|Wikipedia Title):"
)
"""The beginning of a further demonstration, in any of the prompts' layouts."""


def kept(text: str, until: Until) -> str:
    """The part of a generated text that the step asked for; may be empty."""
    match until:
        case "sentence":
            return first_sentence(text)
        case "line":
            return text.split("\n", 1)[0].strip()
        case "chain":
            return _NEXT.split(text, maxsplit=1)[0].strip()
        case "end":
            return text.strip()


def stop_condition(until: Until) -> Callable[[str], bool]:
    """A function that takes the text piece by piece and returns True once the part that was asked for is complete."""
    match until:
        case "sentence":
            return SentenceStop().feed
        case "line":
            return lambda piece: "\n" in piece
        case "chain":
            return _ChainStop().feed
        case "end":
            return lambda _: False


class _ChainStop:
    """Stop condition of a whole chain: the beginning of a further demonstration behind it."""

    def __init__(self) -> None:
        self._text = ""

    def feed(self, piece: str) -> bool:
        self._text += piece
        # Every beginning of a demonstration ends in a colon, so that the growing text is searched only for a few
        # pieces.
        return ":" in piece and bool(_NEXT.search(self._text))
