"""Event loop in a thread of its own, in which all requests to a server run."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import aclosing
from functools import partial
from threading import Event, Thread
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from cotrail.common.printable_text import storable
from cotrail.core.calls import Call
from cotrail.core.ports.cancellation import Cancellation, Interrupted
from cotrail.errors import TransientStepError

Done = TypeVar("Done")


class Closable(Protocol):
    """A resource that has to be closed in the thread in which it was used."""

    async def aclose(self) -> None:
        """Closes it."""


class _Loop(Struct, frozen=True):
    loop: asyncio.AbstractEventLoop
    ended: asyncio.Event


class EventLoopThread:
    """Runs coroutines for callers in any thread; unlike threads, coroutines can be cancelled wherever they wait.

    resource: used by the coroutines, and closed after the last of them.
    """

    def __init__(self, resource: Closable) -> None:
        # The loop exists only in its thread, and callers need it.
        started: Future[_Loop] = Future()
        Thread(target=asyncio.run, args=(_serve(resource, started),), name="openai", daemon=True).start()
        self._serving = started.result()
        self._interrupted = Event()
        self._running: set[Future[Any]] = set()

    def run(self, work: Callable[[], Coroutine[Any, Any, Done]], cancellation: Cancellation | None = None) -> Done:
        """Runs a coroutine to its end; raises Interrupted where it was cancelled, alone or with all others."""
        if self._interrupted.is_set():
            raise Interrupted
        future = asyncio.run_coroutine_threadsafe(_contained(work()), self._serving.loop)
        self._running.add(future)
        if self._interrupted.is_set():  # `interrupt` may have run just before the future was added
            future.cancel()
        try:
            with (cancellation or Cancellation()).calling(future.cancel):
                return future.result()
        except CancelledError:
            raise Interrupted from None
        finally:
            self._running.discard(future)
            del future  # else future, error and traceback would keep each other alive, and all that the frames hold

    def sleep(self, seconds: float, cancellation: Cancellation | None = None) -> None:
        """Waits; raises as `run` does."""
        if seconds > 0:
            self.run(partial(asyncio.sleep, seconds), cancellation)

    def interrupt(self) -> None:
        """Cancels every coroutine, now and from now on."""
        self._interrupted.set()
        for future in self._running.copy():
            future.cancel()

    def close(self) -> None:
        """Ends the thread, without waiting for it."""
        self.interrupt()
        self._serving.loop.call_soon_threadsafe(self._serving.ended.set)


async def _contained(work: Coroutine[Any, Any, Done]) -> Done:
    """Awaits the work; errors that would end the event loop, and with it all other requests, become a step's error."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        raise TransientStepError(f"a request gave up: {error!r}; the step is tried again") from error


async def _serve(resource: Closable, started: Future[_Loop]) -> None:
    ended = asyncio.Event()
    async with aclosing(resource):
        started.set_result(_Loop(asyncio.get_running_loop(), ended))
        await ended.wait()


class Function(Struct, frozen=True):
    """A piece of what a call says."""

    name: str | None = None
    arguments: str | None = None


class CallPiece(Struct, frozen=True):
    """A piece of a call; index: which call it belongs to, by default the one that its id begins, or the last."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Calls:
    """Takes pieces of calls; characters: how much text they have."""

    def __init__(self) -> None:
        self.characters = 0
        self._pieces: dict[int, list[CallPiece]] = {}

    def take(self, piece: CallPiece) -> None:
        """Adds a piece."""
        index = piece.index
        if index is None:
            # A piece with an id begins a call; one without it is more of the last, if there is one.
            index = len(self._pieces) - (1 if self._pieces and not piece.id else 0)
        self._pieces.setdefault(index, []).append(piece)
        function = piece.function or Function()
        self.characters += len(function.name or "") + len(function.arguments or "")

    def whole(self) -> tuple[Call, ...]:
        """The calls in their order."""
        return tuple(_call(pieces) for _, pieces in sorted(self._pieces.items()))


def _call(pieces: list[CallPiece]) -> Call:
    functions = [piece.function for piece in pieces if piece.function]
    return Call(
        name=storable("".join(each.name or "" for each in functions)),
        arguments=storable("".join(each.arguments or "" for each in functions)),
        id=storable(next((piece.id for piece in pieces if piece.id), "")),
    )
