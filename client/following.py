"""Streams of server-sent events: read from a server, and gone on with where the connection is lost."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from time import monotonic, sleep
from typing import Any, get_args

import msgspec
from msgspec import Struct

from cotrail.errors import UnavailableError
from cotrail.services.live.events import is_last
from cotrail.services.operations.operation import Operation

SILENT_SECONDS = 60.0
"""A stream from which nothing comes for so long is lost: the server sends a comment after 15 seconds."""

LOST_SECONDS = 600.0
"""How long a server may be away before a follower gives up."""

PAUSE_SECONDS = 1.0
"""The pause before connecting again, unless the server says another one."""

Open = Callable[[str], AbstractContextManager[Iterable[str]]]
"""Opens the stream behind the event of this id, or from the beginning, and gives its lines; raises CotrailError."""


class _Sent(Struct):
    """An event as it came."""

    id: str = ""
    data: str = ""


class Follower:
    """The records of a stream, without a gap or a repetition, whichever process of the server answers."""

    def __init__(self, operation: Operation[Any, Any], open_: Open, pause: Callable[[float], object] = sleep) -> None:
        (event,) = get_args(operation.answer_type)
        self._decoder = msgspec.json.Decoder(event)
        self._open = open_
        self._pause = pause
        self._last = ""
        self._seconds = PAUSE_SECONDS
        self._heard: float | None = None

    def __iter__(self) -> Iterator[Any]:
        """Yield the records up to the last; raises the error that the server answers with, UnavailableError if none."""
        while True:
            try:
                with self._open(self._last) as lines:
                    for sent in self._events(lines):
                        event = self._decoder.decode(sent.data)
                        yield event
                        if is_last(event):
                            return
            except UnavailableError:
                if self._heard is None or monotonic() - self._heard > LOST_SECONDS:
                    raise
            self._pause(self._seconds)

    def _events(self, lines: Iterable[str]) -> Iterator[_Sent]:
        sent = _Sent()
        for line in lines:
            self._heard = monotonic()
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "retry" and value.isdigit():
                self._seconds = int(value) / 1000
            elif name == "id":
                sent.id = value
            elif name == "data":
                sent.data = value
            elif not line and sent.data:
                self._last = sent.id or self._last
                yield sent
                sent = _Sent()
