"""Records that come as they are made, as server-sent events."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from typing import Any

import msgspec
from anyio import CancelScope, CapacityLimiter, to_thread
from litestar.response import ServerSentEvent, ServerSentEventMessage
from msgspec import Struct

MOST_STREAMS = 1000
"""The most streams of a process that wait for their next record at a time; each takes a thread meanwhile."""

_END = object()


async def in_threads(work: Callable[..., Any], *arguments: Any) -> Any:
    """Carries out work that waits, in a thread of those for streams."""
    return await to_thread.run_sync(work, *arguments, limiter=_limiter())


async def each_of(records: Iterator[Any], first: Any) -> AsyncIterator[Any]:
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


async def event_stream(records: Iterator[Struct | None]) -> ServerSentEvent:
    """The answer that tells of records as they come; raises what is raised before the first one."""
    return ServerSentEvent(_messages(records, await in_threads(next, records)))


async def _messages(records: Iterator[Struct | None], first: Struct | None) -> AsyncIterator[ServerSentEventMessage]:
    async for record in each_of(records, first):
        if record is None:
            continue
        tag = record.__struct_config__.tag
        yield ServerSentEventMessage(event=str(tag), data=msgspec.json.encode(record).decode())


@cache
def _limiter() -> CapacityLimiter:
    return CapacityLimiter(MOST_STREAMS)
