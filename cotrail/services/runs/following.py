"""Following a run or a question: first what is recorded of it, then what happens, without a gap or a repetition.

`Following` is one generator, which asks to read or to wait, and two ways to carry that out: in a thread, for the
command line, and in an event loop, for the many streams of a server.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from threading import Event
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

from msgspec import Struct

from cotrail.models.queries.events import START, Position, Subject, read_events, read_horizon, read_position
from cotrail.models.queries.runs import resolve_run
from cotrail.models.queries.traces import find_question
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.live_events import Ended, LiveEvent
from cotrail.services.runs.live_hub import HUB, PAGE, Page, Subscriber
from cotrail.services.store import reading

Batch = tuple[LiveEvent, ...]


class _HandOut(Struct, frozen=True):
    """Asks to hand these events out."""

    events: Batch


_Asked = Literal["read", "wait"] | _HandOut
_Flow = Generator[_Asked, Page | None, None]


class _Place(NamedTuple):
    """Where to read on; begun: whether this database gave the position."""

    subject: Subject
    position: Position
    begun: bool


def _page(place: _Place) -> tuple[Position, Page]:
    """The page behind a place, and the position of its end."""
    subject, position, begun = place
    with reading() as connection:
        # Another database's may be ahead of all that this one has given, and its reader knows nothing of this one.
        if not begun and position.number >= read_horizon(connection):
            position = START
        page = read_events(connection, {subject: position}, PAGE).get(subject, ())
    return page[-1][0] if page else position, page


_Reads = dict[_Place, "asyncio.Task[tuple[Position, Page]]"]
_reads: WeakKeyDictionary[asyncio.AbstractEventLoop, _Reads] = WeakKeyDictionary()


async def _page_together(place: _Place) -> tuple[Position, Page]:
    """The same, read once for all who ask for it at the same time, as all followers do whose server was lost."""
    reads = _reads.setdefault(asyncio.get_running_loop(), {})
    if place not in reads:
        reads[place] = asyncio.create_task(asyncio.to_thread(_page, place))
        reads[place].add_done_callback(lambda _: reads.pop(place))
    return await asyncio.shield(reads[place])


def _next(flow: _Flow, page: Page | None) -> _Asked | None:
    try:
        return flow.send(page)
    except StopIteration:
        return None


async def _rings(rung: asyncio.Event, seconds: float) -> bool:
    """Whether it rings within so many seconds."""
    try:
        await asyncio.wait_for(rung.wait(), seconds)
    except TimeoutError:
        return False
    rung.clear()
    return True


class Following:
    """The events of a subject from the first one to its end, to be iterated over once."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._position: Position = START
        self._begun = False
        self._closed = False
        self._ring: Callable[[], None] = lambda: None

    def go_on_behind(self, event: str) -> None:
        """Begin behind the event of this id, before anything is read; raises InputError where it is none."""
        self._position = read_position(event)

    def close(self) -> None:
        """End it where it is, from whichever thread; what comes is left to the next reader, who continues behind it."""
        self._closed = True
        self._ring()

    def __iter__(self) -> Iterator[LiveEvent]:
        """The events, in a thread that may wait."""
        rung, flow = Event(), self._flow()
        page: Page | None = None
        self._ring = rung.set
        try:
            while asked := _next(flow, page):
                match asked:
                    case "read":
                        page = self._take(_page(self._place))
                    case "wait":
                        rung.wait()
                        rung.clear()
                    case _HandOut(events):
                        yield from events
        finally:
            flow.close()

    async def batches(self, still_seconds: float) -> AsyncGenerator[Batch, None]:
        """The events in an event loop, as many at once as there are; none where none come for so many seconds."""
        loop, rung, flow = asyncio.get_running_loop(), asyncio.Event(), self._flow()
        page: Page | None = None

        def ring() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(rung.set)

        self._ring = ring
        try:
            while asked := _next(flow, page):
                match asked:
                    case "read":
                        page = self._take(await _page_together(self._place))
                    case "wait":
                        if not await _rings(rung, still_seconds):
                            yield ()
                    case _HandOut(events):
                        yield events
        finally:
            flow.close()

    def _flow(self) -> _Flow:
        """Read up to where others are, then be notified; a follower that is too slow for that reads again."""
        while not self._closed:
            page = (yield "read") or ()
            if page:
                yield _HandOut(tuple(event for _, event in page))
            if len(page) == PAGE:
                continue
            subscriber = Subscriber(self._position, self._ring)
            if HUB.attach(self.subject, subscriber):
                try:
                    if (yield from self._told(subscriber)):
                        return
                finally:
                    HUB.detach(self.subject, subscriber)

    def _told(self, subscriber: Subscriber) -> Generator[_Asked, Page | None, bool]:
        """Hand out what the subscriber receives; returns whether that was the end."""
        while not self._closed:
            events = subscriber.take()
            if events:
                self._position = next((read_position(each.id) for each in reversed(events) if each.id), self._position)
                yield _HandOut(events)
                if isinstance(events[-1], Ended):
                    return True
            elif subscriber.overtaken:
                return False
            else:
                yield "wait"
        return False

    @property
    def _place(self) -> "_Place":
        return _Place(self.subject, self._position, self._begun)

    def _take(self, read: tuple[Position, Page]) -> Page:
        """Note where the page that was read ends."""
        self._begun = True
        self._position, page = read
        return page


@operation("live.run_events", "GET", "/runs/{run}/events", Scope.READ, answers="events")
def run_events(run: str, after: str | None = None) -> Iterable[LiveEvent]:
    """Follow a run: what is recorded of it from the beginning, then what happens, until it ends.

    after: the id of the last event that was read, behind which to go on; a header `Last-Event-ID` goes before it.
    """
    # Begins behind the event `after`; raises UnknownNameError, and InputError where that is none.
    with reading() as connection:
        return _following(Subject(resolve_run(connection, run)), after)


@operation("live.question_events", "GET", "/runs/{run}/questions/{question}/events", Scope.READ, answers="events")
def question_events(run: str, question: str, after: str | None = None) -> Iterable[LiveEvent]:
    """Follow one question of a run, by its id or its number from 1, until it ends or is blocked."""
    # Begins behind the event `after`; raises the same.
    with reading() as connection:
        run_id = resolve_run(connection, run)
        return _following(Subject(run_id, find_question(connection, run_id, question)), after)


def _following(subject: Subject, after: str | None) -> Following:
    following = Following(subject)
    if after:
        following.go_on_behind(after)
    return following
