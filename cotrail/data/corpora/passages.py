"""Paragraphs under the names by which corpora are published: cotrail's own, BEIR's, Pyserini's and DPR's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from cotrail.common.json_files import decode
from cotrail.common.refusals import refusal
from cotrail.common.tsv_files import rows
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


def of_object(place: str, raw: bytes) -> Paragraph:
    """The paragraph of a JSON object; CorpusError names the field that is missing, ambiguous, unknown or empty."""
    return _paragraph(decode(raw, _Line, place, CorpusError), place)


def of_rows(path: Path) -> Iterator[tuple[str, Paragraph]]:
    """Yield the paragraphs of a tab-separated file with their places; errors as in `of_object`."""
    for place, _, cells in rows(path, (IDS, TEXTS), CorpusError, total=None):
        try:
            line = msgspec.convert(cells, _Line)
        except msgspec.ValidationError as cause:
            raise CorpusError(f"{place}: {refusal(cause, _Line, cells)}; correct the header") from cause
        yield place, _paragraph(line, place)


def _paragraph(line: _Line, place: str) -> Paragraph:
    (id_field, id_), (title_field, title), (text_field, text) = (
        _one_of(line, names, place) for names in (IDS, TITLES, TEXTS)
    )
    if not id_field:
        raise CorpusError(f"{place}: there is no field {_either(IDS)}; give each paragraph its own")
    if not text_field:
        raise CorpusError(f"{place}: there is no field {_either(TEXTS)}; add it or take the record out")
    if text_field == "contents" and not title_field:
        title, text = _titled(text)
    # BEIR publishes documents of a title alone, such as TREC-COVID's articles without an abstract.
    if not (id_field == "_id" and title.strip()):
        check_text(text, "text", place, CorpusError)
    return Paragraph(id=id_, title=title, text=text)


def _one_of(line: _Line, names: tuple[str, ...], place: str) -> tuple[str, str]:
    """The only one of the fields that is given, and its value; both empty where none is."""
    values = [(name, value) for name in names if isinstance(value := getattr(line, name), str)]
    if len(values) > 1:
        both = " and ".join(f"`{name}`" for name, _ in values)
        raise CorpusError(f"{place}: {both} mean the same; leave one of them")
    return values[0] if values else ("", "")


def _titled(contents: str) -> tuple[str, str]:
    """Title and text of Pyserini's `contents`: the first line is the title, in quotation marks in DPR's Wikipedia."""
    first, _, rest = contents.partition("\n")
    if not rest.strip() or len(first) > LONGEST_TITLE:
        return "", contents
    title = first.strip()
    quoted = len(title) > 1 and title.startswith('"') and title.endswith('"')
    return (title[1:-1].replace('""', '"') if quoted else title), rest.strip("\n")


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(f"`{name}`" for name in names)
