"""Readers of JSON Lines files and JSON lists whose errors name the place of the record."""

import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import ijson
import msgspec

from cotrail.common.input_limits import (
    CORRECT,
    MAX_DEPTH,
    MAX_RECORD_BYTES,
    read_whole,
    shown_size,
    too_deep,
)
from cotrail.common.json_streaming import OversizeError, elements
from cotrail.common.refusals import refusal
from cotrail.common.storable_text import holds_nul
from cotrail.common.text_files import lines as lines
from cotrail.common.text_files import opened
from cotrail.common.validation import shown
from cotrail.errors import InputError

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


def _whole_entries(raw: bytes) -> int:
    """Count the valid entries before the place where a list is broken, so that the error can name the next one."""
    count = 0
    try:
        for _ in elements(io.BytesIO(raw)):
            count += 1
    except (OversizeError, ijson.JSONError, UnicodeDecodeError):
        return count
    return count


def is_list(path: Path, error: type[InputError]) -> bool:
    """Return whether the file is one JSON list, going by its first character."""
    return _start(path, error).startswith(b"[")


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
    except UnicodeDecodeError as cause:
        byte = cause.object[cause.start]
        raise error(
            f"{place}: this isn't text in UTF-8 (it has the byte 0x{byte:02x}); save the file as UTF-8"
        ) from cause
    except msgspec.DecodeError as cause:
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
    except (msgspec.DecodeError, UnicodeDecodeError) as broken:
        return f"this isn't valid JSON in UTF-8 ({broken})"
