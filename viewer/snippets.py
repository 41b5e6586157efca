"""Snippets of paragraphs, where the words are that were searched for."""

from collections.abc import Collection

from cotrail.common.printable_text import without_commands
from cotrail.viewer.marking import WORD

LENGTH, LEAD = 220, 60
"""Characters of a snippet, and how many of them stand before the first word that matches."""


def snippet(text: str, words: Collection[str]) -> str:
    """Where a text, in one line, first has one of the words."""
    line = " ".join(without_commands(text).split())
    first = next((found.start() for found in WORD.finditer(line) if found[0] in words), 0)
    begin = 0 if first <= LENGTH - LEAD else line.rfind(" ", 0, first - LEAD) + 1
    end = begin + LENGTH
    return f"{'…' if begin else ''}{line[begin:end].rstrip()}{'…' if end < len(line) else ''}"
