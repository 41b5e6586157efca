"""Readers of JSON Lines files, JSON lists and records in any form, whose errors name the place of the record."""

import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

import ijson
import msgspec
from ijson.common import ObjectBuilder

from cotrail.common.printable_text import holds_nul
from cotrail.common.refusals import refusal, shown
from cotrail.common.tables import COLUMNAR, FORMS, TABLES, form_of, table_columns, table_rows
from cotrail.common.text_files import (
    CORRECT,
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_RECORD_BYTES,
    MIB,
    line_text,
    opened,
    read_whole,
    shown_size,
    too_deep,
)
from cotrail.common.text_files import lines as lines
from cotrail.errors import InputError

# Streaming of large JSON files: a part at a time, none larger or deeper than `input_limits` allows.
#
# ijson's own `items` and `parse` keep the path of the current position as a text, whose length grows with the nesting:
# crafted brackets then take memory quadratic in their depth. This module uses ijson's low-level events only.

Event = tuple[str, Any]

READ_BYTES = MIB
"""Bytes per read; ijson takes time quadratic in the number of reads that one text spans."""

OPENING = frozenset({"start_map", "start_array"})
CLOSING = frozenset({"end_map", "end_array"})


class OversizeError(Exception):
    """A part is too large or too deeply nested; the message says which."""


class _Metered:
    """File that refuses to read on after `MAX_RECORD_BYTES` (plus at most one read) since the last `begin`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._handed_out = 0

    def begin(self) -> None:
        self._handed_out = 0

    def read(self, size: int = -1) -> bytes:
        """Read as from a file; OversizeError once the part is too large."""
        if self._handed_out > MAX_RECORD_BYTES:
            raise OversizeError(f"it is larger than {shown_size(MAX_RECORD_BYTES)}")
        content = self._file.read(size)
        self._handed_out += len(content)
        return content


def events(file: BinaryIO, *, multiple_values: bool = False) -> Iterator[tuple[int, Event]]:
    """Yield ijson's events with their depths, up to the limits of one part; whatever follows is read no further.

    Raises OversizeError, ijson.JSONError or UnicodeDecodeError.
    """
    return _levelled(_parsed(_Metered(file), multiple_values=multiple_values))


def elements(file: BinaryIO) -> Iterator[Any]:
    """Yield the elements of a JSON list; nothing where the file isn't one. Errors as in `events`."""
    return (value for _, value in _parts(file, "start_array"))


def members(file: BinaryIO) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a JSON object; nothing where the file isn't one. Errors as in `events`."""
    return _parts(file, "start_map")


def _parts(file: BinaryIO, kind: Literal["start_array", "start_map"]) -> Iterator[tuple[str, Any]]:
    metered = _Metered(file)
    key, builder = "", ObjectBuilder()
    fits = is_whole = False
    for depth, (event, value) in _levelled(_parsed(metered)):
        if is_whole:  # Yielded only now that an event followed: a file cut off behind the part raises first.
            yield key, builder.value
            builder, is_whole = ObjectBuilder(), False
            metered.begin()
        if depth == 0:
            fits = event == kind
        elif depth == 1 and event == "map_key":
            key = value
        elif fits:
            builder.event(event, value)
            is_whole = depth == 1 and event not in OPENING


def _parsed(metered: _Metered, *, multiple_values: bool = False) -> Iterator[Event]:
    events: Iterator[Event] = ijson.basic_parse(
        metered, buf_size=READ_BYTES, use_float=True, multiple_values=multiple_values
    )
    return events


def _levelled(events: Iterator[Event]) -> Iterator[tuple[int, Event]]:
    """Add to each event how many lists and objects enclose it."""
    depth = 0
    for event in events:
        if event[0] in CLOSING:
            depth -= 1
        yield depth, event
        if event[0] in OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                raise OversizeError(f"lists or objects stand more than {MAX_DEPTH} deep within one another")


T = TypeVar("T")


def entries(path: Path, error: type[InputError]) -> Iterator[tuple[str, msgspec.Raw]]:
    """Yield the elements of a JSON list with their places, e.g. `dev.json, entry 3`; the file is held in memory."""
    with opened(path, error) as file:
        raw = read_whole(file, str(path), error)
    if not raw.strip():
        return
    try:
        raw_entries = msgspec.json.decode(raw, type=list[msgspec.Raw])
    except msgspec.ValidationError as cause:
        raise error(
            f"{path} must be one JSON list, `[{{...}}, ...]`; it begins with {shown(raw[:40].decode(errors='replace'))}"
        ) from cause
    except RecursionError as cause:
        raise error(too_deep(f"{path}, entry {_whole_entries(raw) + 1}")) from cause
    except msgspec.DecodeError as cause:
        place = f"{path}, entry {_whole_entries(raw) + 1}"
        raise error(f"{place}: this isn't valid JSON in UTF-8 ({cause}); correct it or take it out") from cause
    for number, entry in enumerate(raw_entries, start=1):
        place = f"{path}, entry {number}"
        if len(bytes(entry)) > MAX_RECORD_BYTES:
            raise error(f"{place}: it is larger than {shown_size(MAX_RECORD_BYTES)}; {CORRECT}")
        yield place, entry


def records(path: Path, error: type[InputError], total: int | None = MAX_FILE_BYTES) -> Iterator[tuple[str, bytes]]:
    """Yield the records of a file in any form as JSON objects with their places, e.g. `dev.csv, line 3`.

    A cell of CSV and TSV is a text; one of Parquet and Arrow has its own type. total: the most bytes of all records
    together; None where the caller doesn't keep them, though a JSON list is held in memory all the same.
    The error names what can't be read. NotInstalledError: the extra `files` isn't there.
    """
    match form_of(path, error):
        case "JSON":
            return ((place, bytes(raw)) for place, raw in entries(path, error))
        case "JSON Lines":
            return lines(path, error, total)
        case None:
            raise error(f"{path} begins with {beginning(path, error)}; give {FORMS}")
    return table_rows(path, error, total)


def columns(path: Path, error: type[InputError]) -> tuple[str, ...]:
    """The names of a table's columns, or of the first record's fields; none where the file has neither."""
    if form_of(path, error) in (*TABLES, *COLUMNAR):
        return table_columns(path, error)
    return next((tuple(decode(raw, dict[str, Any], place, error)) for place, raw in records(path, error)), ())


def _whole_entries(raw: bytes) -> int:
    """Count the valid entries before the place where a list is broken, so that the error can name the next one."""
    count = 0
    try:
        for _ in elements(io.BytesIO(raw)):
            count += 1
    except (OversizeError, ijson.JSONError, UnicodeDecodeError):
        return count
    return count


def is_object(path: Path, error: type[InputError]) -> bool:
    """Return whether the file is a JSON object, or lines of them, by its first character; an empty one is, too."""
    start = _start(path, error)
    return not start or start.startswith(b"{")


def beginning(path: Path, error: type[InputError]) -> str:
    """The beginning of a file, for errors."""
    return shown(_start(path, error)[:60].decode(errors="replace"))


def _start(path: Path, error: type[InputError]) -> bytes:
    with opened(path, error) as file:
        pieces = iter(partial(file.read, 65_536), b"")
        return next((piece for piece in pieces if piece.strip()), b"").lstrip()


def decode(raw: bytes | msgspec.Raw, kind: type[T], place: str, error: type[InputError]) -> T:
    """Decode a record as its type; the error names the place.

    NUL characters and lone surrogates are refused: PostgreSQL can't store them.
    """
    try:
        record = msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as cause:
        raise error(f"{place}: {problem_of(cause, raw, kind)}; correct the record or take it out") from cause
    except RecursionError as cause:
        raise error(too_deep(place)) from cause
    except msgspec.DecodeError as cause:
        line_text(bytes(raw), place, error)
        if not bytes(raw).rstrip().endswith(b"}"):
            raise error(
                f"{place}: this isn't valid JSON ({cause}): the record doesn't end on its line; write each on one "
                "line, as `jq -c .` does and `jq -c '.data[]'` of those under a key, or all of them as a list"
            ) from cause
        raise error(f"{place}: this isn't valid JSON ({cause}); correct it or take it out") from cause
    if holds_nul(bytes(raw)):
        raise error(f"{place}: the text holds a NUL character (\\u0000), which can't be stored; take it out")
    return record


def problem_of(cause: Exception, raw: bytes | msgspec.Raw, kind: Any) -> str:
    """Why JSON can't be decoded as its type, with the value, or with the keys and choices that there are."""
    if not isinstance(cause, msgspec.ValidationError):
        return str(cause)
    try:
        return refusal(cause, kind, msgspec.json.decode(raw))
    except RecursionError:  # this and the next: behind the place that validation stopped at
        return f"lists or objects stand more than {MAX_DEPTH} deep within one another"
    except msgspec.DecodeError as broken:
        return f"this isn't valid JSON in UTF-8 ({broken})"
