"""Streaming of large JSON files: a part at a time, none larger or deeper than `input_limits` allows.

ijson's own `items` and `parse` keep the path of the current position as a text, whose length grows with the nesting:
crafted brackets then take memory quadratic in their depth. This module uses ijson's low-level events only.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

import ijson
from ijson.common import ObjectBuilder

from cotrail.common.input_limits import MAX_DEPTH, MAX_RECORD_BYTES, MIB, shown_size

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
        """Start the next part."""
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
