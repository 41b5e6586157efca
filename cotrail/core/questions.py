"""Paragraphs, and the questions of a dataset that they answer.

Kinds of questions, as their dataset names them: e.g. `{"type": "bridge", "level": "hard"}`.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, structs

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


def paragraphs_of(given: Iterable[Mapping[str, Any] | Paragraph]) -> list[Paragraph]:
    """Paragraphs as people write them down: without an id, their place from 1 is it; raises msgspec.ValidationError."""
    return [
        each if isinstance(each, Paragraph) else msgspec.convert({"id": str(place), "title": "", **each}, Paragraph)
        for place, each in enumerate(given, start=1)
    ]


class FiledParagraph(Paragraph, frozen=True, kw_only=True):
    """A paragraph as it is indexed; fields: its metadata by which searches may filter, each with its values."""

    fields: dict[str, tuple[str | float, ...]] = {}


class ListPlace(Struct, frozen=True, kw_only=True):
    """A paragraph's rank and score in one of the lists that a search was put together from, such as `bm25`."""

    list: str
    rank: int
    score: float


class Hit(Struct, frozen=True, kw_only=True):
    """A paragraph that a search found; ranks count from 1, the best first.

    lists: its places in the lists that the search fused or reranked; none of a search by one list.
    """

    paragraph: Paragraph
    rank: int
    score: float
    lists: tuple[ListPlace, ...] = ()


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


UNNAMED = "type"
"""The name of a kind that has none of its own."""

QuestionSort = Literal["multi-hop", "slot-filling", "fact-checking", "long-form"]
"""The tasks of Search-in-the-Chain (section 4.1): questions of several steps; objects of a subject's relation; claims
to be checked; questions that are answered at length."""


def named(**kinds: str) -> dict[str, str]:
    """The kinds that a question has; an empty one is left out."""
    return {name: kind for name, kind in kinds.items() if kind}


def recorded_kinds(kinds: Mapping[str, str]) -> str:
    """The kinds as a question's row holds them: a JSON object, or nothing where there are none."""
    return msgspec.json.encode(kinds).decode() if kinds else ""


def read_kinds(recorded: str) -> dict[str, str]:
    """The kinds of a question's row; see `recorded_kinds`."""
    return msgspec.json.decode(recorded, type=dict[str, str]) if recorded else {}


MOST_GRADE = 1_000
"""The highest grade of relevance; publishers have 4 at most."""


class GoldParagraph(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A paragraph that the dataset marks as needed for the answer; id: in its corpus, where the dataset gives it.

    by: what a paragraph must have in common with it to count as it; its title alone where a dataset names pages.
    grade: how relevant it was judged, 1 where datasets don't grade; NDCG alone weighs by it.
    facts: those of its sentences that support the answer; empty where the dataset doesn't say which. The causes of
        wrong answers alone go by them.
    """

    title: str
    text: str
    id: str = ""
    by: Literal["content", "id", "title"] = "content"
    grade: Annotated[int, Meta(ge=1, le=MOST_GRADE)] = 1
    facts: tuple[str, ...] = ()


class JudgedAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer of another run, which a judge grades.

    run: that run's id; digest: of its question, as it ended there.
    answer: the answer's text; sentences: the chain of thought behind it, where the rubric shows it.
    paragraphs: those that the question collected, where the rubric shows them.
    """

    run: str
    digest: str
    answer: str
    sentences: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()


class Question(Struct, frozen=True, kw_only=True):
    """A question as its dataset publishes it.

    answers: every form that counts as right, the main one first; empty where none is published. An answer of several
        spans (IIRC) is a JSON list in one string.
    gold: the paragraphs that together support the answer; empty where none are published.
    pinned: the passage that the question is about and that every prompt shows (IIRC); gold doesn't hold it.
    evidence: what the dataset names as evidence, which a system may be asked to look at: the paragraphs, or the titles
        of their pages where the corpus doesn't have them.
    kinds: the sorts that its dataset counts the question among, by name, e.g. `{"type": "bridge", "level": "hard"}`.
    judged: the answers of other runs that a judge's run grades, one or two; empty in all other runs.
    """

    id: str
    text: str
    answers: tuple[str, ...] = ()
    gold: tuple[GoldParagraph, ...] = ()
    pinned: GoldParagraph | None = None
    evidence: tuple[str | GoldParagraph, ...] = ()
    kinds: Mapping[str, str] = {}
    judged: tuple[JudgedAnswer, ...] = ()

    @property
    def asked(self) -> "Question":
        """As its system sees it: without what it is judged by, and kinds, which may say that; a judge sees answers."""
        answers = self.answers if self.judged else ()
        return structs.replace(self, answers=answers, gold=(), kinds={})

    def __hash__(self) -> int:
        return hash((self.id, self.text))  # a mapping has none of its own
