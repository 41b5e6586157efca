"""Where a generation ends, and what is kept of what was written until then."""

import re
from collections.abc import Callable

from cotrail.common.sentence_boundaries import SentenceStop, first_sentence
from cotrail.core.generation import Until

STOPS: dict[Until, tuple[str, ...]] = {
    "sentence": (),
    "line": ("\n",),
    "chain": ("\nQ:", "\nWikipedia Title:"),
    "end": (),
}
"""Before which texts a server can end by itself. Others need to be seen whole, or need what stands before them."""

_NEXT = re.compile(
    # A line above a further hypothesis is the table that it is about, unless it ends the chain.
    r"\n[^\S\n]*\n(?![^\n]*answer is)[^\n]+\n\s*Question:|(?:\A|\n)\s*(?:Q|Question|Wikipedia Title):"
)
"""What begins a further demonstration, in any of the prompts' layouts."""


def kept(text: str, until: Until) -> str:
    """What a step asked for, of everything that was written; empty where that is nothing."""
    match until:
        case "sentence":
            return first_sentence(text)
        case "line":
            return text.split("\n", 1)[0].strip()
        case "chain":
            return _NEXT.split(text, maxsplit=1)[0].strip()
        case "end":
            return text.strip()


def watch(until: Until) -> Callable[[str], bool]:
    """Takes a text piece by piece, and tells after each whether what was asked for is whole."""
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
    """Watches a chain that is being written and tells when a further demonstration begins behind it."""

    def __init__(self) -> None:
        self._text = ""

    def feed(self, piece: str) -> bool:
        self._text += piece
        return ":" in piece and bool(_NEXT.search(self._text))
