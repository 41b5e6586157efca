"""Exponential backoff between attempts."""

import time


class Backoff:
    """Exponential backoff: the pause between attempts doubles with each failure, and a success resets it.

    shortest, longest: the bounds of the pause; pause: the current one. All are seconds.
    """

    def __init__(self, shortest: float, longest: float) -> None:
        self.pause = shortest
        self._shortest, self._longest = shortest, longest
        self._next = 0.0

    @property
    def due(self) -> bool:
        """Return whether the next attempt is due."""
        return time.monotonic() >= self._next

    def attempted(self, *, succeeded: bool) -> None:
        """Note that an attempt was made just now."""
        self.pause = self._shortest if succeeded else min(2 * self.pause, self._longest)
        self._next = time.monotonic() + self.pause
