"""The hub: reads once for all followers of a process what happens to the runs that they follow.

While anybody follows, one thread asks the store a few times a second: one statement for all runs, however many
followers these have. A follower costs statements of its own only until it has read up to where the others are.
"""

import logging
from threading import Condition, Thread

from cotrail.errors import CotrailError
from cotrail.models.queries.events import Subject, read_events
from cotrail.services.live.events import Token
from cotrail.services.live.followed import PAGE, Followed, Subscriber
from cotrail.services.live.standings import Standings
from cotrail.services.live.tokens import Tokens
from cotrail.services.store import reading

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
"""The pause between two looks for events."""


class Hub:
    """Tells all followers of a process what happens."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._followed: dict[Subject, Followed] = {}
        self._thread: Thread | None = None
        self._standings = Standings()
        self._tokens = Tokens(self._tell_token)

    def attach(self, subject: Subject, subscriber: Subscriber) -> bool:
        """Tell the subscriber what comes behind its position; False where others know more: it has to read on first."""
        with self._changed:
            followed = self._followed.get(subject) or Followed(subject, subscriber.position)
            if not followed.add(subscriber):
                return False
            self._followed[subject] = followed
            self._start()
            self._listen()
        return True

    def detach(self, subject: Subject, subscriber: Subscriber) -> None:
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
                    each.pass_on(token)

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
            pages = read_events(connection, {each.subject: each.position for each in followed}, PAGE)
            for each in followed:
                each.read(pages.get(each.subject, ()))
            news = self._standings.news(connection, followed)
        more = any(each.has_more for each in followed)
        with self._changed:
            for each in followed:
                each.tell(news.get(each.subject, ()))
            self._forget_left()
        return more


HUB = Hub()
"""The hub of this process."""
