"""How many of the gold paragraphs a system collected."""

import hashlib
import re
from collections.abc import Iterable, Sequence

from cotrail.paragraphs import Paragraph
from cotrail.questions import GoldParagraph

_DROPPED = re.compile(r"[^\x00-\x7f]|\s")
_SPACE = re.compile(r"\s")


def support_recall(collected: Iterable[Paragraph], gold: Sequence[GoldParagraph]) -> float | None:
    """The share of the gold paragraphs that are among the collected ones; None where none are published.

    Paragraphs are the same where title and text are, whatever their ids: see `content_key`.
    """
    wanted = {content_key(paragraph.title, paragraph.text) for paragraph in gold}
    if not wanted:
        return None
    found = {content_key(paragraph.title, paragraph.text) for paragraph in collected}
    return len(wanted & found) / len(wanted)


def content_key(title: str, text: str) -> str:
    """The same for paragraphs that differ only in white space, in case and in characters beyond ASCII."""
    return _digest(title) + _digest(text)


def _digest(text: str) -> str:
    return hashlib.sha256(_folded(text).encode()).hexdigest()


def _folded(text: str) -> str:
    """IRCoT's folding, except where it would leave less than half: in other scripts, all texts would be the same."""
    whole, ascii_only = _SPACE.sub("", text.lower()), _DROPPED.sub("", text).lower()
    return ascii_only if 2 * len(ascii_only) >= len(whole) else whole
