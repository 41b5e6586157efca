"""Streaming of large JSON files: a part at a time, none larger or deeper than `input_limits` allows.

ijson's own `items` and `parse` keep the path to where they are as a text, which for nested brackets takes memory by the
square of their depth; this needs only its events.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

import ijson
from ijson.common import ObjectBuilder

from cotrail.common.input_limits import MAX_DEPTH, MAX_RECORD_BYTES, MIB, shown_size

Event = tuple[str, Any]

READ_BYTES = MIB
"""What is read at once: a text that goes on over several reads takes time by the square of their number."""

OPENING = frozenset({"start_map", "start_array"})
CLOSING = frozenset({"end_map", "end_array"})


class OversizeError(Exception):
    """A part is too large or too deep; the message says which."""


class _Metered:
    """A file that is read until `MAX_RECORD_BYTES`, or a read more, are handed out since `begin` was called."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._handed_out = 0

    def begin(self) -> None:
        """A part is done; what follows is another one's."""
        self._handed_out = 0

    def read(self, size: int = -1) -> bytes:
        """As a file's."""
        if self._handed_out > MAX_RECORD_BYTES:
            raise OversizeError(f"it is larger than {shown_size(MAX_RECORD_BYTES)}")
        content = self._file.read(size)
        self._handed_out += len(content)
        return content


def events(file: BinaryIO, *, multiple_values: bool = False) -> Iterator[tuple[int, Event]]:
    """What stands in the first part of a file, each with the depth that it stands at; of the rest as much as was read.

    OversizeError, ijson.JSONError and UnicodeDecodeError end it.
    """
    return _levelled(_parsed(_Metered(file), multiple_values=multiple_values))


def elements(file: BinaryIO) -> Iterator[Any]:
    """The elements of a JSON list; none where the file isn't one. Errors as in `events`."""
    return (value for _, value in _parts(file, "start_array"))


def members(file: BinaryIO) -> Iterator[tuple[str, Any]]:
    """The keys and values of a JSON object; none where the file isn't one. Errors as in `events`."""
    return _parts(file, "start_map")


def _parts(file: BinaryIO, kind: Literal["start_array", "start_map"]) -> Iterator[tuple[str, Any]]:
    metered = _Metered(file)
    key, builder = "", ObjectBuilder()
    fits = is_whole = False
    for depth, (event, value) in _levelled(_parsed(metered)):
        if is_whole:  # and something that may follow it does
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
    found: Iterator[Event] = ijson.basic_parse(
        metered, buf_size=READ_BYTES, use_float=True, multiple_values=multiple_values
    )
    return found


def _levelled(found: Iterator[Event]) -> Iterator[tuple[int, Event]]:
    """The events, each with how many lists and objects it stands in."""
    depth = 0
    for event in found:
        if event[0] in CLOSING:
            depth -= 1
        yield depth, event
        if event[0] in OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                raise OversizeError(f"lists or objects stand more than {MAX_DEPTH} deep within one another")
