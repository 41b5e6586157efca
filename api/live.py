"""Streams of server-sent events: the operations that answer records as they are made."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import msgspec
from litestar import Litestar, Request
from litestar.response import Stream

from cotrail.configuration.settings import settings
from cotrail.errors import UnavailableError
from cotrail.services.live.events import Event
from cotrail.services.operations.operation import Follows, Operation

AnyRequest = Request[Any, Any, Any]

MEDIA_TYPE = "text/event-stream"

HEARTBEAT_SECONDS = 15.0
"""After this time without events a comment is sent, so that both ends notice where the connection is lost."""

HEARTBEAT = b": still there\n\n"

RETRY_MILLISECONDS = 1000
"""How long clients wait before they connect again."""

AGAIN_SECONDS = 2.0
"""How long those wait who found all streams taken."""

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Proxies are to send each event on at once."""


class Streams:
    """The streams that this process sends, so that there are not too many, and that it can end them all."""

    def __init__(self) -> None:
        self._open: set[Follows] = set()
        self._closing = False

    def check(self) -> None:
        """Raise UnavailableError where no further stream can begin."""
        if self._closing or len(self._open) >= settings().streams:
            raise UnavailableError("this process sends as many streams as it can; try again", AGAIN_SECONDS)

    @contextmanager
    def sending(self, following: Follows) -> Iterator[None]:
        """Count it while it is sent."""
        self._open.add(following)
        if self._closing:
            following.close()
        try:
            yield
        finally:
            self._open.discard(following)

    def close(self) -> None:
        """End all, so that their readers go on elsewhere; no others begin."""
        self._closing = True
        for following in tuple(self._open):
            following.close()


@asynccontextmanager
async def streams_end_first(app: Litestar) -> AsyncIterator[None]:
    """End streams as soon as the process is told to end: a server waits for open connections, and these stay open.

    The server's own handlers of signals are called afterwards.
    """
    streams = app.state.streams = Streams()
    loop = asyncio.get_running_loop()
    former: dict[int, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(streams.close)
        if callable(handler := former[number]):
            handler(number, frame)

    # Signals can only be handled in the main thread; a server in another one is told to end otherwise.
    if threading.current_thread() is threading.main_thread():
        former |= {int(each): signal.signal(each, handle) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        streams.close()
        for ended_by, handler in former.items():
            signal.signal(ended_by, handler)


def frame(event: Event) -> bytes:
    """An event as it is sent."""
    tag = str(event.__struct_config__.tag)
    head = f"id: {event.id}\nevent: {tag}\ndata: " if event.id else f"event: {tag}\ndata: "
    return head.encode() + msgspec.json.encode(event) + b"\n\n"


async def follow(request: AnyRequest, operation: Operation[Any, Any], arguments: Mapping[str, Any]) -> Stream:
    """The stream of an operation that answers a `Follows`; it goes on behind `Last-Event-ID` where that is sent."""
    streams: Streams = request.app.state.streams
    streams.check()
    following: Follows = await asyncio.to_thread(operation.function, **arguments)
    if last := request.headers.get("Last-Event-ID"):
        following.go_on_behind(last)
    return Stream(_sent(streams, following), media_type=MEDIA_TYPE, headers=HEADERS)


async def _sent(streams: Streams, following: Follows) -> AsyncIterator[bytes]:
    """The bytes of a stream: all events that have come at a time in one piece."""
    with streams.sending(following):
        yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
        async with aclosing(following.batches(HEARTBEAT_SECONDS)) as batches:
            async for batch in batches:
                yield b"".join(map(frame, batch)) or HEARTBEAT
