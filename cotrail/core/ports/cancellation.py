"""Cancellation of one generation while others continue."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock


class Cancellation:
    """A cancellation token: one thread cancels a generation, which another one carries out and then stops."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._cancelled = False
        self._callbacks: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Cancels the generation for good, and calls the callbacks."""
        with self._lock:
            self._cancelled = True
            # Called without the lock, since a callback may end the block that removes it.
            callbacks = self._callbacks.copy()
        for callback in callbacks:
            callback()

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Registers a callback for the block: `cancel` calls it in its thread; after `cancel`, it is called at once."""
        with self._lock:
            self._callbacks.append(callback)
        try:
            if self._cancelled:
                callback()
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)
