"""Cancellation of a single generation while others continue, and who listens to it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

Listener = Callable[[str, str], None]
"""Receives what a generation has written so far, text and thoughts, each time that it has written more. It is called in
the thread that writes, and must return at once."""


class Cancellation:
    """Cancellation token: one thread cancels, and the thread that generates observes it.

    listener: listens to the generation; None where nobody does. Engines that write all at once tell it nothing.
        Who listens waits for the answer, so that a served model is asked at once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._cancelled = False
        self._callbacks: list[Callable[[], object]] = []
        self.listener: Listener | None = None

    @property
    def cancelled(self) -> bool:
        """Return whether the generation is no longer wanted."""
        return self._cancelled

    def cancel(self) -> None:
        """Cancels the generation; it can't be undone."""
        with self._lock:
            self._cancelled = True
            # Called without the lock, since a callback may end the block that removes it.
            callbacks = self._callbacks.copy()
        # Outside the lock: a callback may wait for threads that are entering or leaving `calling`.
        for callback in callbacks:
            callback()

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Registers a callback for the block: `cancel` calls it in its thread; after `cancel`, it is called at once."""
        with self._lock:
            # Registered before the flag is read, so that a cancellation in between is seen by one of the two. It may be
            # seen by both: callbacks must tolerate a second call.
            self._callbacks.append(callback)
        try:
            if self._cancelled:
                callback()
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)


class Interrupted(Exception):  # noqa: N818 - control flow, not a failure
    """A generation was cancelled: its process is shutting down, or its result is no longer wanted."""
