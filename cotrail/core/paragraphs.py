"""A paragraph of a corpus, and one found by a search."""

import hashlib
import json
from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct

from cotrail.common.printable_text import storable


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


def joined(sentences: Iterable[str]) -> str:
    """A paragraph's text: its sentences with one space between."""
    return " ".join(stripped for sentence in sentences if (stripped := sentence.strip()))


# Titles of pages: the question that asks a model for them, and its answer, parsed (IRCoT, appendix B).


def title_question(question: str, count: int) -> str:
    """The question that asks for the titles of `count` pages."""
    return (
        f"The question is: '{question}'. Generate titles of {count} Wikipedia pages that have relevant information "
        "to answer this question."
    )


def parse_titles(text: str) -> tuple[str, ...]:
    """The titles in what a model wrote: a JSON list, or else what stands between commas.

    Of what isn't JSON, quotation marks and square brackets are dropped, as in the authors' released code. Empty titles
    are left out, and each title is there once.
    """
    titles = (title.strip() for title in _listed(text))
    return tuple(dict.fromkeys(title for title in titles if title))


def _listed(text: str) -> list[str]:
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        decoded = None
    if isinstance(decoded, list):
        return [storable(title) for title in decoded if isinstance(title, str)]
    return text.translate(str.maketrans("", "", '"[]')).split(",")
