"""A paragraph of a corpus, and one found by a search."""

import hashlib
from functools import cached_property

from msgspec import Struct


class Paragraph(Struct, frozen=True, kw_only=True, dict=True):
    """A titled paragraph; `id` is its name in its corpus and takes no part in its identity."""

    id: str
    title: str
    text: str

    @cached_property
    def digest(self) -> str:
        """The name of this content in the store: the SHA-256 of title and text, which hold no NUL."""
        return hashlib.sha256(f"{self.title}\0{self.text}".encode()).hexdigest()

    @property
    def statement(self) -> str:
        """Title and text as one, as sentences are compared with them; a knowledge source's sentence has no title."""
        return f"{self.title}\n{self.text}" if self.title else self.text


class Hit(Struct, frozen=True, kw_only=True):
    """A paragraph that a search found; ranks count from 1, the best first."""

    paragraph: Paragraph
    rank: int
    score: float


def passage_of(text: str, title: str = "") -> Paragraph:
    """A text that is from no corpus, as a paragraph; its digest serves as its id."""
    paragraph = Paragraph(id="", title=title, text=text)
    return Paragraph(id=paragraph.digest, title=title, text=text)
