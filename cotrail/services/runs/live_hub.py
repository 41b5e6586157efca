"""The hub: reads once for all followers of a process what happens to the runs that they follow.

While anybody follows, one thread asks the store a few times a second: one statement for all runs, however many
followers these have. A follower costs statements of its own only until it has read up to where the others are.
It says too how far the followed runs are, and whether they and the followed questions have ended.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from threading import Condition, Lock, Thread
from time import monotonic

from sqlalchemy import Connection

from cotrail.errors import CotrailError
from cotrail.models.queries import events
from cotrail.models.schema.states import QuestionStatus, RunState
from cotrail.services.runs.live_events import Ended, LiveEvent, Progressed, Token, Tokens
from cotrail.services.store import reading

# What is followed: a run or a question, with those who follow it, each with a bounded queue and a bell.

PAGE = 500
"""The most events of a subject that are read at once."""

STILL_SECONDS = 5.0
"""After this time without events a run is looked at too: it may have been paused or removed."""

Page = Sequence[tuple[events.Position, events.Recorded]]

MOST_QUEUED = 2000
"""The largest number of events that wait for a follower; one that takes them more slowly reads them from the store."""


class Subscriber:
    """A follower's queue. position: of the last recorded event in it; ring: called whenever there is something new."""

    def __init__(self, position: events.Position, ring: Callable[[], None]) -> None:
        self.position = position
        self.overtaken = False
        self._ring = ring
        self._queue: list[LiveEvent] = []
        self._lock = Lock()

    def offer(self, recorded: Sequence[tuple[events.Position, events.Recorded]], further: Sequence[LiveEvent]) -> None:
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
    """A subject with its followers. position: up to which these were notified; progress: what they were sent last."""

    def __init__(self, subject: events.Subject, position: events.Position) -> None:
        self.subject = subject
        self.position = position
        self.subscribers: set[Subscriber] = set()
        self.progress: Progressed | None = None
        self.page: Page = ()
        self._moved = True
        self._looked = 0.0

    def add(self, subscriber: Subscriber) -> bool:
        """Tell that one too; False where the others were sent more than it knows."""
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
        """Whether how far it is may have changed."""
        return self._moved or monotonic() - self._looked > STILL_SECONDS

    def looked_at(self, *, done: bool = True) -> None:
        """Note that it was read how far it is; done: whether all was sent that follows from it."""
        self._moved, self._looked = not done, monotonic()

    def tell(self, further: Sequence[LiveEvent]) -> None:
        """Hand out what was read, and what follows from how far it is."""
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


PAUSE_SECONDS = 1.0
"""The shortest pause between two readings of how far runs are."""

SHARE = 10
"""A reading takes at most one part in so many of the time, however large the runs are."""

News = Mapping[events.Subject, tuple[LiveEvent, ...]]


class ProgressReader:
    """Reads how far runs are, as often as the cost of that allows."""

    def __init__(self) -> None:
        self._due = self._rested = 0.0

    def news(self, connection: Connection, followed: Collection[Followed]) -> News:
        """What there is to tell apart from events. The connection has the snapshot in which events were read."""
        due = [each for each in followed if each.is_due]
        questions = [each for each in due if each.subject.question is not None]
        # A new follower learns at once how far the run is.
        now = monotonic()
        runs = [
            each
            for each in due
            if each.subject.question is None and now >= (self._due if each.progress else self._rested)
        ]
        news = _of_questions(connection, questions) if questions else {}
        return news | self._of_runs(connection, runs) if runs else news

    def _of_runs(
        self, connection: Connection, runs: Collection[Followed]
    ) -> dict[events.Subject, tuple[LiveEvent, ...]]:
        began = monotonic()
        by_run = events.read_run_progress(connection, {each.subject.run for each in runs})
        news = {each.subject: tuple(_of_run(connection, each, by_run.get(each.subject.run))) for each in runs}
        ended = monotonic()
        self._rested = ended + SHARE * (ended - began)
        self._due = max(self._rested, ended + PAUSE_SECONDS)
        return news


def _of_run(connection: Connection, run: Followed, reached: events.RunProgress | None) -> Iterator[LiveEvent]:
    if reached is None:
        yield Ended(state=RunState.PRUNED)
        return
    progress = Progressed(run=run.subject.run, state=reached.state, questions=reached.questions, steps=reached.steps)
    if progress != run.progress:
        yield progress
    ends = reached.ended and _is_all_sent(connection, run)
    run.looked_at(done=ends or not reached.ended)
    if ends:
        yield Ended(state=reached.state)


def _of_questions(
    connection: Connection, questions: Collection[Followed]
) -> dict[events.Subject, tuple[LiveEvent, ...]]:
    statuses = events.read_statuses(connection, {each.subject.question or 0 for each in questions})
    return {
        each.subject: tuple(_of_question(connection, each, statuses.get(each.subject.question or 0)))
        for each in questions
    }


def _of_question(connection: Connection, question: Followed, status: str | None) -> Iterator[LiveEvent]:
    if status is None:
        yield Ended(state=RunState.PRUNED)
        return
    ended = status != QuestionStatus.OPEN
    ends = ended and _is_all_sent(connection, question)
    question.looked_at(done=ends or not ended)
    if ends:
        yield Ended(state=status)


def _is_all_sent(connection: Connection, followed: Followed) -> bool:
    """Whether followers know all that the snapshot has, once they receive what was just read."""
    return not followed.has_more and events.is_settled(connection, followed.subject)


logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
"""The pause between two looks for events."""


class Hub:
    """Tells all followers of a process what happens."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._followed: dict[events.Subject, Followed] = {}
        self._thread: Thread | None = None
        self._progress = ProgressReader()
        self._tokens = Tokens(self._tell_token)

    def attach(self, subject: events.Subject, subscriber: Subscriber) -> bool:
        """Tell the subscriber what comes behind its position; False where others know more: it has to read on first."""
        with self._changed:
            followed = self._followed.get(subject) or Followed(subject, subscriber.position)
            if not followed.add(subscriber):
                return False
            self._followed[subject] = followed
            self._start()
            self._listen()
        return True

    def detach(self, subject: events.Subject, subscriber: Subscriber) -> None:
        """Tell that one nothing more."""
        with self._changed:
            if followed := self._followed.get(subject):
                followed.subscribers.discard(subscriber)
            self._forget_left()
            self._changed.notify()

    def _start(self) -> None:
        """Have a thread look, unless one does."""
        if self._thread is None:
            self._thread = Thread(target=self._poll, name="live", daemon=True)
            self._thread.start()

    def _forget_left(self) -> None:
        """Forget what nobody follows any more."""
        self._followed = {subject: each for subject, each in self._followed.items() if each.subscribers}
        self._listen()

    def _listen(self) -> None:
        """Listen to the tokens of the questions that are followed by themselves."""
        self._tokens.listen(frozenset(each.question for each in self._followed if each.question is not None))

    def _tell_token(self, question: int, token: Token) -> None:
        with self._changed:
            for subject, each in self._followed.items():
                if subject.question == question:
                    for subscriber in each.subscribers:
                        subscriber.offer((), (token,))

    def _poll(self) -> None:
        """Look for events until nobody follows any more."""
        while True:
            more = self._look_safely()
            with self._changed:
                if not more:
                    self._changed.wait_for(lambda: not self._followed, POLL_SECONDS)
                if not self._followed:
                    self._thread = None
                    return

    def _look_safely(self) -> bool:
        """The same as `look`; False where that fails, as a thread that ended would leave its followers waiting."""
        try:
            return self.look()
        except CotrailError as error:
            logger.warning("followers of runs wait: %s", error)
        except Exception:
            logger.exception("followers of runs wait")
        return False

    def look(self) -> bool:
        """Read and hand out what is new; returns whether there is more of it."""
        with self._changed:
            followed = list(self._followed.values())
        if not followed:
            return False
        with reading() as connection:
            # Plans of prepared statements are kept, and one that was made for small tables reads large ones whole.
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            pages = events.read_events(connection, {each.subject: each.position for each in followed}, PAGE)
            for each in followed:
                each.read(pages.get(each.subject, ()))
            news = self._progress.news(connection, followed)
        more = any(each.has_more for each in followed)
        with self._changed:
            for each in followed:
                each.tell(news.get(each.subject, ()))
            self._forget_left()
        return more


HUB = Hub()
"""The hub of this process."""
