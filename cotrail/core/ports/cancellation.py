"""Cutting off one generation while others go on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock


class Cancellation:
    """Whether a generation is still wanted: one thread says that it isn't, another one heeds it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._cancelled = False
        self._callbacks: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """Whether it isn't wanted any more."""
        return self._cancelled

    def cancel(self) -> None:
        """Says so, once and for all."""
        with self._lock:
            self._cancelled = True
            callbacks = self._callbacks.copy()
        for callback in callbacks:
            callback()

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Has it called once `cancel` is, or has been, while the block runs; from the thread that cancels."""
        with self._lock:
            self._callbacks.append(callback)
        try:
            if self._cancelled:
                callback()
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)
