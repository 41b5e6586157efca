"""Words of a query in the paragraphs that it found."""

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from cotrail.common.printable_text import without_commands

SNIPPET, LEAD = 220, 60
"""Characters of a snippet, and how many of them stand before the first word that matches."""

MOST_CHARACTERS, MOST_MARKS = 2000, 8
"""How much of a paragraph is shown in a list, and how many words are marked: pages stay light."""

_WORD = re.compile(r"\w+")
_USUAL_WORDS = (
    "a an and are as at be been but by did do does for from had has have he her his how if in into is it its no not of "
    "on or she so such that the their them then there these they this to was were what when where which who whom whose "
    "why will with"
)
_USUAL = frozenset(_USUAL_WORDS.split())


class Piece(Struct, frozen=True):
    """A piece of a text; matches: whether it is a word that was searched for."""

    text: str
    matches: bool


def words_of(query: str) -> frozenset[str]:
    """The words of a query that say what it is about, in the form in which they are compared."""
    return frozenset(_form(word) for word in _WORD.findall(query) if word.lower() not in _USUAL)


def marked(text: str, words: frozenset[str]) -> list[Piece]:
    """A text in pieces, of which the first matching words are marked."""
    pieces, end = [], 0
    for start, stop in islice(_matches(text, words), MOST_MARKS):
        pieces += [Piece(text[end:start], matches=False)] if start > end else []
        pieces.append(Piece(text[start:stop], matches=True))
        end = stop
    return [*pieces, Piece(text[end:], matches=False)] if end < len(text) else pieces


def snippet(text: str, words: frozenset[str]) -> list[Piece]:
    """Where a text, in one line, first has one of the words, in pieces."""
    line = " ".join(without_commands(text[: 10 * MOST_CHARACTERS]).split())
    first = next(_matches(line, words), (0, 0))[0]
    begin = 0 if first <= SNIPPET - LEAD else line.rfind(" ", 0, first - LEAD) + 1
    end = begin + SNIPPET
    shown = f"{'…' if begin else ''}{line[begin:end].rstrip()}{'…' if end < len(line) else ''}"
    return marked(shown, words)


def _matches(text: str, words: frozenset[str]) -> Iterator[tuple[int, int]]:
    return (found.span() for found in _WORD.finditer(text) if _form(found[0]) in words) if words else iter(())


def _form(word: str) -> str:
    """A word without the ending of a plural."""
    folded = word.casefold()
    return folded[:-1] if len(folded) > 3 and folded.endswith("s") else folded
