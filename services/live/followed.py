"""What is followed: a run or a question, with those who follow it, each with a bounded queue and a bell."""

from collections.abc import Callable, Sequence
from threading import Lock
from time import monotonic

from cotrail.models.queries.events import Position, Recorded, Subject
from cotrail.services.live.events import Ended, LiveEvent, Progressed, Token

PAGE = 500
"""The most events of a subject that are read at once."""

STILL_SECONDS = 5.0
"""After this time without events a run is looked at too: it may have been paused or removed."""

Page = Sequence[tuple[Position, Recorded]]

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


class Followed:
    """A subject with its followers. position: up to which these were told; progress: what they were told last."""

    def __init__(self, subject: Subject, position: Position) -> None:
        self.subject = subject
        self.position = position
        self.subscribers: set[Subscriber] = set()
        self.progress: Progressed | None = None
        self.page: Page = ()
        self._moved = True
        self._looked = 0.0

    def add(self, subscriber: Subscriber) -> bool:
        """Tell that one too; False where the others were told more than it knows."""
        if self.position > subscriber.position:
            return False
        self.subscribers.add(subscriber)
        if self.progress:
            subscriber.offer((), (self.progress,))
        return True

    def read(self, page: Page) -> None:
        """Take in what is behind the position."""
        self.page = page
        self._moved = self._moved or bool(page)

    @property
    def has_more(self) -> bool:
        """Whether more may be behind what was just read."""
        return len(self.page) == PAGE

    @property
    def is_due(self) -> bool:
        """Whether its standing may have changed."""
        return self._moved or monotonic() - self._looked > STILL_SECONDS

    def looked_at(self, *, done: bool = True) -> None:
        """Note that its standing was read; done: whether all is told that follows from it."""
        self._moved, self._looked = not done, monotonic()

    def pass_on(self, token: Token) -> None:
        """Hand out a token at once."""
        for subscriber in self.subscribers:
            subscriber.offer((), (token,))

    def tell(self, further: Sequence[LiveEvent]) -> None:
        """Hand out what was read, and what follows from its standing."""
        for subscriber in tuple(self.subscribers):
            subscriber.offer(self.page, further)
            if subscriber.overtaken:
                self.subscribers.discard(subscriber)
        if self.page:
            self.position, self.page = self.page[-1][0], ()
        for event in further:
            if isinstance(event, Progressed):
                self.progress = event
            elif isinstance(event, Ended):
                self.subscribers.clear()
