"""What servers and tools of agents answer, as paragraphs: documents of Search-R1's form, other JSON, or a text."""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.printable_text import storable
from cotrail.core.questions import Paragraph

ID_DIGITS = 32
"""Hexadecimal digits of the id of a document without one: a prefix of its content's digest."""


class Document(Struct, frozen=True, kw_only=True):
    """A paragraph in this form; servers that search the web give no ids."""

    id: str | int | None = None
    contents: str


def document_of(paragraph: Paragraph) -> Document:
    """The paragraph as Search-R1's corpora have it; a title is one line."""
    title = paragraph.title.replace("\n", " ")
    return Document(id=paragraph.id, contents=f'"{title}"\n{paragraph.text}')


def paragraph_of(document: Document) -> Paragraph:
    """The document as a paragraph, without the quotes around its title; one line alone is a text without a title."""
    first, line_break, rest = storable(document.contents).partition("\n")
    title = first.strip()
    if len(title) > 1 and title[0] == title[-1] == '"':
        title = title[1:-1]
    paragraph = Paragraph(id="", title=title, text=rest) if line_break else Paragraph(id="", title="", text=first)
    id_ = "" if document.id is None else storable(str(document.id))
    return msgspec.structs.replace(paragraph, id=id_ or paragraph.digest[:ID_DIGITS])


Json = Mapping[str, Any]

IDS, TITLES = ("id", "docid", "url", "link"), ("title", "name")
TEXTS = ("text", "content", "snippet", "passage", "body", "description")
LISTS = ("results", "result", "documents", "hits", "items")
"""What fields are called in JSON, those that go first first."""

_DOCUMENT = re.compile(
    r"^[ \t]*+(?:(?:Doc|Document|Passage)[ \t]*+\[?[0-9]{1,4}\]?|\[[0-9]{1,4}\])[ \t]*+[(:]?[ \t]*+(?:Title:)?[ \t]*+",
    re.MULTILINE,
)
"""The beginning of a document among several: `Doc 1(Title: ...) ...`, `Passage 2: ...`, `[3] ...`."""


def paragraphs_in(content: str) -> Iterator[Paragraph]:
    """The paragraphs that a tool showed, those without any text left out; without an id, a digest is it."""
    given = _listed(content)
    found = _documents(content) if given is None else map(_paragraph, given)
    yield from (_identified(each) for each in found if each.title or each.text)


def _documents(content: str) -> Iterator[Paragraph]:
    heads = list(_DOCUMENT.finditer(content))
    if not heads:
        yield Paragraph(id="", title="", text=storable(content.strip()))
    ends = [*(each.start() for each in heads[1:]), len(content)]
    for head, end in zip(heads, ends, strict=False):
        title, closed, text = content[head.end() : end].partition(")" if "(" in head[0] else "\n")
        if not closed or "\n" in title:
            title, text = "", content[head.end() : end]
        yield Paragraph(id="", title=storable(title.strip().strip('"')), text=storable(text.strip()))


def _paragraph(document: Json) -> Paragraph:
    id_ = _said(document, IDS)
    if isinstance(contents := document.get("contents"), str) and not _said(document, TITLES):
        return paragraph_of(Document(id=id_ or None, contents=contents))
    return Paragraph(id=id_, title=_said(document, TITLES), text=_said(document, (*TEXTS, "contents")).strip())


def _identified(paragraph: Paragraph) -> Paragraph:
    digest = sha256(f"{paragraph.title}\0{paragraph.text}".encode()).hexdigest()[:16]
    return paragraph if paragraph.id else Paragraph(id=digest, title=paragraph.title, text=paragraph.text)


def _said(document: Json, names: tuple[str, ...]) -> str:
    values = (document.get(name) for name in names)
    return next((storable(str(each)) for each in values if isinstance(each, str | int) and each != ""), "")


def _listed(content: str) -> list[Json] | None:
    """The documents of a JSON text; None where it is none."""
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return None
    if isinstance(value, dict):
        value = next((value[name] for name in LISTS if isinstance(value.get(name), list)), [value])
    if not isinstance(value, list):
        return None
    documents = [each.get("document", each) for each in value if isinstance(each, dict)]
    return documents if len(documents) == len(value) and all(isinstance(each, dict) for each in documents) else None
