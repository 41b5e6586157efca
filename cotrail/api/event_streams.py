"""Records that come as they are made, as long as the one who asked may see them."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from functools import cache
from typing import Any, TypeVar

from anyio import CancelScope, CapacityLimiter, to_thread

from cotrail.errors import UnauthenticatedError, UnavailableError
from cotrail.services.access import tokens
from cotrail.services.actor import Actor

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
