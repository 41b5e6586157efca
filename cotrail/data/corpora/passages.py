"""Paragraphs under the names by which corpora are published: cotrail's own, BEIR's, Pyserini's and DPR's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from cotrail.common.json_files import decode
from cotrail.common.tsv_files import rows
from cotrail.common.validation import explained
from cotrail.core.paragraphs import Paragraph
from cotrail.data.record_checks import check_text
from cotrail.errors import CorpusError

IDS = ("id", "_id", "docid")
TITLES = ("title", "wikipedia_title")
TEXTS = ("text", "contents", "passage")
LONGEST_TITLE = 255
"""Maximum characters of the first line of `contents` for it to be a title: Wikipedia's have at most 255 bytes."""


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    """A paragraph as written; metadata, url: read past."""

    id: str | UnsetType = UNSET
    _id: str | UnsetType = UNSET
    docid: str | UnsetType = UNSET
    title: str | UnsetType | None = UNSET
    wikipedia_title: str | UnsetType | None = UNSET
    text: str | UnsetType = UNSET
    contents: str | UnsetType = UNSET
    passage: str | UnsetType = UNSET
    metadata: Any = None
    url: Any = None


class _Named(NamedTuple):
    """A value and the field that it stands in."""

    field: str
    value: str


def of_object(place: str, raw: bytes) -> Paragraph:
    """The paragraph of a JSON object; CorpusError names the field that is missing, ambiguous, unknown or empty."""
    return _paragraph(decode(raw, _Line, place, CorpusError), place)


def of_rows(path: Path) -> Iterator[tuple[str, Paragraph]]:
    """Yield the paragraphs of a tab-separated file with their places; errors as in `of_object`."""
    for place, _, cells in rows(path, (IDS, TEXTS), CorpusError, total=None):
        try:
            line = msgspec.convert(cells, _Line)
        except msgspec.ValidationError as cause:
            raise CorpusError(f"{place}: {explained(cause, cells, _Line)}; correct the header") from cause
        yield place, _paragraph(line, place)


def _paragraph(line: _Line, place: str) -> Paragraph:
    id_, title, text = (_one_of(line, names, place) for names in (IDS, TITLES, TEXTS))
    if id_ is None:
        raise CorpusError(f"{place}: there is no field {_either(IDS)}; give each paragraph its own")
    if text is None:
        raise CorpusError(f"{place}: there is no field {_either(TEXTS)}; add it or take the record out")
    own_title, own_text = _titled(text.value) if title is None and text.field == "contents" else (None, text.value)
    found = Paragraph(id=id_.value, title=own_title or (title.value if title else ""), text=own_text)
    _check_text(found, id_, place)
    return found


def _one_of(line: _Line, names: tuple[str, ...], place: str) -> _Named | None:
    """The only one of the fields that is given; None where none is."""
    given = [_Named(name, value) for name in names if isinstance(value := getattr(line, name), str)]
    if len(given) > 1:
        both = " and ".join(f"`{each.field}`" for each in given)
        raise CorpusError(f"{place}: {both} mean the same; leave one of them")
    return given[0] if given else None


def _titled(contents: str) -> tuple[str, str]:
    """Title and text of Pyserini's `contents`: the first line is the title, in quotation marks in DPR's Wikipedia."""
    first, _, rest = contents.partition("\n")
    if not rest.strip() or len(first) > LONGEST_TITLE:
        return "", contents
    title = first.strip()
    quoted = len(title) > 1 and title.startswith('"') and title.endswith('"')
    return (title[1:-1].replace('""', '"') if quoted else title), rest.strip("\n")


def _check_text(found: Paragraph, id_: _Named, place: str) -> None:
    # BEIR publishes documents of a title alone, such as TREC-COVID's articles without an abstract.
    if not (id_.field == "_id" and found.title.strip()):
        check_text(found.text, "text", place, CorpusError)


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(f"`{name}`" for name in names)
