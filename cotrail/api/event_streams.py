"""Answers as server-sent events: records as they are made, while the one who asked may see them."""

import asyncio
import signal
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import cache, partial
from itertools import count
from time import monotonic
from types import FrameType
from typing import Any, TypeVar

import msgspec
from anyio import CancelScope, CapacityLimiter, to_thread
from litestar import Litestar
from litestar.response import Stream
from msgspec import Struct

from cotrail.api import problems
from cotrail.api.origins import AnyRequest
from cotrail.configuration.settings import settings
from cotrail.errors import CotrailError, UnauthenticatedError, UnavailableError
from cotrail.services.access import tokens
from cotrail.services.actor import Actor, actor
from cotrail.services.operations.event_names import PROBLEM
from cotrail.services.operations.operation import Follows, Operation

T = TypeVar("T")

MOST_STREAMS = 1000
"""The most streams of a process that wait for their next record at a time; each takes a thread meanwhile."""

LOOK_SECONDS = tokens.REMEMBERED_SECONDS / 2
"""How often it is looked whether a stream's token is still valid; what comes has to come, or be None, as often."""

_END = object()


async def in_threads(work: Callable[..., Any], *arguments: Any) -> Any:
    """Carries out work that waits, in a thread of those for streams."""
    return await to_thread.run_sync(work, *arguments, limiter=_limiter())


async def each_of(records: Iterator[Any], first: Any) -> AsyncGenerator[Any, None]:
    """The records with the first one, which was taken before; closes them where the reader goes away.

    They have to yield None now and then while there is nothing to tell: only then is it noticed that nobody reads.
    """
    try:
        record = first
        while record is not _END:
            yield record
            record = await in_threads(next, records, _END)
    finally:
        close = getattr(records, "close", None)
        if close:
            with CancelScope(shield=True):
                await in_threads(close)


async def while_allowed(who: Actor, coming: AsyncIterator[T]) -> AsyncGenerator[T, None]:
    """What comes as long as that one's token is valid; raises UnauthenticatedError once it isn't any more."""
    looked_at = 0.0
    try:
        async for each in coming:
            if who.token is not None and time.monotonic() - looked_at >= LOOK_SECONDS:
                await _look(who.token)
                looked_at = time.monotonic()
            yield each
    finally:
        close = getattr(coming, "aclose", None)
        if close:
            await close()


async def _look(token: str) -> None:
    try:
        is_valid = await to_thread.run_sync(tokens.is_valid, token)
    except UnavailableError:  # it can't be revoked meanwhile either
        return
    if not is_valid:
        raise UnauthenticatedError(tokens.NOT_VALID)


@cache
def _limiter() -> CapacityLimiter:
    return CapacityLimiter(MOST_STREAMS)


# Streams of server-sent events: the one way in which records are sent as they are made.

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

Close = Callable[[], None]


class Streams:
    """The streams that this process sends, so that there are not too many, and that it can end them all."""

    def __init__(self) -> None:
        self._open: dict[int, Close] = {}
        self._numbers = count()
        self._closing = False

    def check(self) -> None:
        """Raise UnavailableError where no further stream can begin."""
        if self._closing or len(self._open) >= settings().streams:
            raise UnavailableError("this process sends as many streams as it can; try again", AGAIN_SECONDS)

    @contextmanager
    def sending(self, close: Close) -> Iterator[None]:
        """Count a stream while it is sent; close: ends it."""
        number = next(self._numbers)
        self._open[number] = close
        if self._closing:
            close()
        try:
            yield
        finally:
            del self._open[number]

    def close(self) -> None:
        """End all, so that their readers go on elsewhere; no others begin."""
        self._closing = True
        for close in tuple(self._open.values()):
            close()


@asynccontextmanager
async def streams_end_first(app: Litestar) -> AsyncIterator[None]:
    """End streams as soon as the process is asked to end: a server waits for open connections, and these stay open.

    The server's own handlers of signals are called afterwards.
    """
    streams = app.state.streams = Streams()
    loop = asyncio.get_running_loop()
    former: dict[int, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(streams.close)
        if callable(handler := former[number]):
            handler(number, frame)

    # Signals can only be handled in the main thread; a server in another one is asked to end otherwise.
    if threading.current_thread() is threading.main_thread():
        former |= {int(each): signal.signal(each, handle) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        streams.close()
        for ended_by, handler in former.items():
            signal.signal(ended_by, handler)


def frame(name: str, data: bytes, id_: str = "") -> bytes:
    """An event as it is sent."""
    head = f"id: {id_}\n" if id_ else ""
    return f"{head}event: {name}\ndata: ".encode() + data + b"\n\n"


def tagged(event: Struct) -> bytes:
    """A record as an event of its own name, under its id where it has a place in the record."""
    return frame(str(event.__struct_config__.tag), msgspec.json.encode(event), getattr(event, "id", None) or "")


async def follow(request: AnyRequest, operation: Operation[Any, Any], arguments: Mapping[str, Any]) -> Stream:
    """The stream of an operation that answers a `Follows`; it continues behind `Last-Event-ID` where that is sent."""
    streams_of(request).check()
    following: Follows = await asyncio.to_thread(operation.function, **arguments)
    if last := request.headers.get("Last-Event-ID"):
        following.go_on_behind(last)
    batches = _formed(following.batches(LOOK_SECONDS), lambda batch: b"".join(map(tagged, batch)))
    return sent(request, batches, following.close)


async def tell(request: AnyRequest, records: Iterator[Struct | None]) -> Stream:
    """The stream of records as they come; raises what is raised before the first one."""
    streams_of(request).check()
    first = await in_threads(next, records)
    return sent(request, _formed(each_of(records, first), lambda each: b"" if each is None else tagged(each)))


def sent(
    request: AnyRequest,
    pieces: AsyncIterator[bytes],
    close: Close | None = None,
    failed: Callable[[AnyRequest, CotrailError], bytes] | None = None,
) -> Stream:
    """The answer that sends events, some at once, as they come, as long as the one who asks may see them.

    pieces: empty ones say that nothing has happened; close: ends them, so that readers go on elsewhere. failed: the
    event that tells of an error in another form than a problem's.
    """
    chunks = _told(streams_of(request), while_allowed(actor(), pieces), close, partial(failed or _problem, request))
    return Stream(chunks, media_type=MEDIA_TYPE, headers=HEADERS)


async def _formed(coming: AsyncGenerator[T, None], form: Callable[[T], bytes]) -> AsyncIterator[bytes]:
    async with aclosing(coming):
        async for each in coming:
            yield form(each)


async def _told(
    streams: Streams, pieces: AsyncGenerator[bytes, None], close: Close | None, failed: Callable[[CotrailError], bytes]
) -> AsyncIterator[bytes]:
    with streams.sending(close or (lambda: None)):
        if close:
            yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
        sent_at = monotonic()
        async with aclosing(pieces):
            try:
                async for piece in pieces:
                    if piece or monotonic() - sent_at >= HEARTBEAT_SECONDS:
                        yield piece or HEARTBEAT
                        sent_at = monotonic()
            except CotrailError as error:
                yield failed(error)


def streams_of(request: AnyRequest) -> Streams:
    """The streams of the request's process."""
    streams: Streams = request.app.state.streams
    return streams


def _problem(request: AnyRequest, error: CotrailError) -> bytes:
    return frame(PROBLEM, msgspec.json.encode(problems.of_error(request, error).content))
