"""One who follows: a bounded queue that the hub fills, and the bell that it rings."""

from collections.abc import Callable, Sequence
from threading import Lock

from cotrail.models.queries.events import Position, Recorded
from cotrail.services.live.events import LiveEvent

MOST_QUEUED = 2000
"""The largest number of events that wait for a follower; one that takes them more slowly reads them from the store."""


class Subscriber:
    """A follower's queue. position: of the last recorded event in it; ring: called whenever there is something new."""

    def __init__(self, position: Position, ring: Callable[[], None]) -> None:
        self.position = position
        self.overtaken = False
        self._ring = ring
        self._queue: list[LiveEvent] = []
        self._lock = Lock()

    def offer(self, recorded: Sequence[tuple[Position, Recorded]], further: Sequence[LiveEvent]) -> None:
        """Add what is behind the position, and what has none; a queue that is full is emptied and takes no more."""
        with self._lock:
            if self.overtaken:
                return
            news: list[LiveEvent] = [event for position, event in recorded if position > self.position]
            if len(self._queue) + len(news) + len(further) > MOST_QUEUED:
                self.overtaken = True
                self._queue.clear()
            else:
                self._queue += [*news, *further]
                self.position = max(self.position, recorded[-1][0]) if recorded else self.position
        self._ring()

    def take(self) -> tuple[LiveEvent, ...]:
        """What has come since the last call."""
        with self._lock:
            taken, self._queue = tuple(self._queue), []
        return taken
