"""FRAMES' table (`test.tsv`, Krishna et al. 2024): 824 questions, each with the pages of Wikipedia that it needs.

Titles of Wikipedia's pages from links to them.
"""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from msgspec import Struct

from cotrail.core.questions import GoldParagraph, Question, named
from cotrail.data.datasets import spec
from cotrail.data.datasets.infotabs import records, written
from cotrail.errors import DatasetError

_AROUND = "[](){}<>\"',;"
"""What may stand around a link in a list; a closing parenthesis may be a title's own."""


def titles_of(text: str) -> tuple[str, ...]:
    """The titles of the pages that links in a text lead to, each once and in order; links to elsewhere have none."""
    return tuple(dict.fromkeys(filter(None, map(_title, _links(text)))))


def _links(text: str) -> Iterator[str]:
    """The links in a text: in a list of any form, or with remarks between them."""
    words = text.replace("https://", " https://").replace("http://", " http://").split()
    stripped = (word.lstrip(_AROUND).rstrip(_AROUND.replace(")", "")) for word in words)
    return (word for word in stripped if word.startswith(("https://", "http://")))


def _title(link: str) -> str:
    """The title of the page, without a section of it; empty where the link leads to no page of Wikipedia."""
    try:
        parts = urlsplit(link)
        host = parts.hostname or ""
    except ValueError:  # brackets that are no address
        return ""
    if not host.endswith("wikipedia.org"):
        return ""
    _, mark, name = parts.path.partition("/wiki/")
    name = unquote(name) if mark else next(iter(parse_qs(parts.query).get("title", [])), "")
    title = " ".join(name.replace("_", " ").split())
    return "" if title.startswith("Special:") else title[:1].upper() + title[1:]


class FramesQuestion(Struct, frozen=True):
    """A question as published; some copies as JSON have it as `Question`.

    links: a list as Python writes it, in copies as JSON a list too.
    """

    answer: str = msgspec.field(name="Answer")
    links: str | tuple[str, ...] = msgspec.field(name="wiki_links")
    reasoning: str = msgspec.field(name="reasoning_types")
    prompt: str | None = msgspec.field(name="Prompt", default=None)
    question: str | None = msgspec.field(name="Question", default=None)


def read(path: Path, _lookup: spec.ParagraphLookup | None) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file; gold: the pages linked, any passage of them. An id is the question's SHA-256."""
    for place, raw, row in records(path, FramesQuestion):
        text = row.prompt if row.prompt is not None else row.question
        if text is None:
            raise DatasetError(f"{place}: there is no Prompt; add it or take the record out")
        titles = titles_of(row.links if isinstance(row.links, str) else " ".join(row.links))
        question = Question(
            id=spec.id_of(text.strip()),
            text=text.strip(),
            answers=spec.accepted_answers((row.answer,)),
            gold=tuple(GoldParagraph(title=title, text="", by="title") for title in titles),
            kinds=named(reasoning=row.reasoning.strip(), pages=str(len(titles)) if titles else ""),
        )
        yield spec.QuestionRecord(place=place, raw=raw, annotated=spec.AnnotatedQuestion(question=question))


_KEYS = frozenset({"Answer", "wiki_links", "reasoning_types"})

SPEC = spec.dataset(
    "frames",
    spec.QuestionForm(format=spec.FileFormat("FRAMES' questions", False, _KEYS), read=read, written=written),
    spec.QuestionForm(format=spec.FileFormat("FRAMES' questions", True, _KEYS), read=read),
)
