"""Format detection: what a file seems to hold, from the keys of its first record; for errors that say so."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import ijson

from cotrail.common.json_files import OversizeError, columns, events
from cotrail.common.tables import COLUMNAR, TABLES, form_of
from cotrail.common.text_files import LONGEST_HEADER, header, opened
from cotrail.data.datasets.spec import FileFormat
from cotrail.errors import InputError

FIRST_KEYS = 40
"""Maximum keys of the first record that are examined."""

FIRST_EVENTS = 100_000
"""Maximum JSON events that are read for them."""

STRATEGYQA_PARAGRAPHS = FileFormat(
    "StrategyQA's paragraphs", False, frozenset(), inside=frozenset({"title", "para_index", "content"})
)
"""A single object that maps ids to paragraphs."""

MULTIHOP_RAG_ARTICLES = FileFormat("MultiHop-RAG's articles", True, frozenset({"title", "body", "published_at"}))

OTHER_FORMATS = (
    STRATEGYQA_PARAGRAPHS,
    MULTIHOP_RAG_ARTICLES,
    FileFormat("2WikiMultihopQA's aliases", False, frozenset({"Q_id", "aliases"})),
    FileFormat("paragraphs of HotpotQA's abstracts", False, frozenset({"url", "title", "text"})),
    FileFormat("paragraphs of a corpus", False, frozenset({"id", "title", "text"}), frozenset({"question"})),
)
"""Formats of files that hold no questions."""

ARTICLES = FileFormat("IIRC's articles", False, frozenset())
"""A single object that maps titles to pages: it has more keys than any other file's first record."""

_BEGINNINGS = {
    b"BZh": "a bz2 archive",
    b"PK\x03\x04": "a zip archive (as .xlsx and .docx are, too)",
    b"\xfd7zXZ": "an xz archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"%PDF": "a PDF",
    b"SQLite format 3": "an SQLite database",
    b"GGUF": "a GGUF model",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"\x7fELF": "a program",
    b"<": "a web page",
}


def detect_format(path: Path, formats: Iterable[FileFormat], error: type[InputError]) -> FileFormat | None:
    """The format of the file, one of these or of `OTHER_FORMATS`; None where it isn't a known one."""
    return next(iter(fitting_formats(path, formats, error)), None)


def fitting_formats(path: Path, formats: Iterable[FileFormat], error: type[InputError]) -> list[FileFormat]:
    """All formats that the file may have, the likeliest first; none where it has no known one."""
    form = form_of(path, error)
    is_list, keys, inside, start = False, list[str](), list[str](), b""
    if form in COLUMNAR:
        keys = list(columns(path, error))
    else:
        with opened(path, error) as file:
            begin = file.tell()
            is_list, keys, inside = _first_record(file)
            file.seek(begin)
            start = file.read(512).lstrip()
            file.seek(begin)
            keys = keys or (header(file.readline(LONGEST_HEADER)) if form in TABLES else [])
    fitting = [each for each in chain(formats, OTHER_FORMATS) if _fits(each, start, is_list, keys, inside)]
    return fitting or ([ARTICLES] if len(keys) == FIRST_KEYS and not is_list else [])


def apparent_content(path: Path, formats: Iterable[FileFormat], error: type[InputError]) -> str | None:
    """What a file seems, e.g. `to hold MuSiQue's questions` or `to be a web page`; None where it isn't recognised."""
    if format_ := detect_format(path, formats, error):
        return f"to hold {format_.holds}"
    if form_of(path, error) in COLUMNAR:
        return None
    with opened(path, error) as file:
        start = file.read(512)
    if content := next((what for mark, what in _BEGINNINGS.items() if start.lstrip().startswith(mark)), None):
        return f"to be {content}"
    return "to be binary data" if b"\0" in start else None


def _fits(
    each: FileFormat,
    start: bytes,
    is_list: bool,  # noqa: FBT001
    keys: Collection[str],
    inside: Collection[str],
) -> bool:
    if each.begins:
        return start.startswith(each.begins)
    has = each.has <= set(keys) and each.inside <= set(inside) and each.lacks.isdisjoint(keys)
    one_of = not each.one_of or not each.one_of.isdisjoint(key.casefold() for key in keys)
    return each.is_list in (None, is_list) and has and one_of


def _first_record(file: BinaryIO) -> tuple[bool, list[str], list[str]]:
    """Return whether the file is a list, the keys of its first record, and the keys of that record's first value."""
    keys: list[str] = []
    inside: list[str] = []
    is_list = False
    with suppress(OversizeError, ijson.JSONError, UnicodeDecodeError):
        for depth, (event, value) in islice(events(file, multiple_values=True), FIRST_EVENTS):
            is_list = is_list or (depth, event) == (0, "start_array")
            record = 1 if is_list else 0
            if event == "map_key" and depth == record + 1:
                keys.append(value)
            elif event == "map_key" and depth == 2 and len(keys) == 1:
                inside.append(value)
            if (event == "end_map" and depth == record) or len(keys) == FIRST_KEYS:
                break
    return is_list, keys, inside
