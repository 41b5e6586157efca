"""How often something is looked for that may not be there."""

import time


class Backoff:
    """Ever more seldom while it is looked for in vain, between `shortest` and `longest` seconds apart.

    pause: how far apart it is looked for now, in seconds.
    """

    def __init__(self, shortest: float, longest: float) -> None:
        self.pause = shortest
        self._shortest, self._longest = shortest, longest
        self._next = 0.0

    @property
    def due(self) -> bool:
        """Whether it is time to look."""
        return time.monotonic() >= self._next

    def looked(self, *, found: bool) -> None:
        """Notes that it was looked for just now."""
        self.pause = self._shortest if found else min(2 * self.pause, self._longest)
        self._next = time.monotonic() + self.pause
