"""What is sent of questions that somebody waits for, over Redis: tokens as they are written, and steps that ended.

Nothing depends on it, and nothing of it is kept: the record has the whole result of each step.
"""

import logging
import threading
import time
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct
from redis import Redis, RedisError

from cotrail.core.ports.cancellation import Listener
from cotrail.models.execution.leases import Claim

logger = logging.getLogger(__name__)

TOKENS_SECONDS = 0.05
"""Least time between two messages with tokens: what is written meanwhile comes together."""

PATIENCE_SECONDS = 1.0
AWAY_SECONDS = 10.0
"""How long Redis gets no messages after it didn't answer."""


class Notice(Struct, frozen=True, omit_defaults=True):
    """A message: a piece of what a step writes; without a step, that one of the question's has ended.

    step: the id of its row; thought: whether the piece is a thought, and no part of the text.
    """

    step: int = 0
    text: str = ""
    thought: bool = False


class _Written(Struct):
    """What a step has written, and how much of it was sent: of its text, and of its thoughts."""

    question_id: int
    step_id: int
    texts: tuple[str, str] = ("", "")
    sent: tuple[str, str] = ("", "")

    def pieces(self) -> list[Notice]:
        """What is new; nothing of a text that was cut or changed since."""
        # Read once: the generating thread replaces `texts` at any time, and what is compared has to be what is kept.
        before, self.sent = self.sent, self.texts
        return [
            Notice(self.step_id, text[len(sent) :], thought)
            for text, sent, thought in zip(self.sent, before, (False, True), strict=True)
            if len(text) > len(sent) and text.startswith(sent)
        ]


def _connected(url: str) -> Redis:
    patience = {"socket_timeout": PATIENCE_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS}
    return Redis.from_url(url.replace("redis+socket://", "unix://", 1), **patience)


def channel_of(prefix: str, question_id: int) -> str:
    """The channel of a question."""
    return f"{prefix}tokens:{question_id}"


class Telling:
    """Publishes what is written, in a thread of its own: who writes never waits for it.

    url: of Redis; prefix: the beginning of the channels' names.
    """

    def __init__(self, url: str, prefix: str) -> None:
        self._url = url
        self._prefix = prefix
        self._changed = threading.Condition()
        self._writing: dict[int, _Written] = {}
        self._ended: list[int] = []
        self._thread: threading.Thread | None = None

    def listener(self, claim: Claim) -> Listener:
        """What listens to the generation of a step."""
        written = _Written(question_id=claim.question_id, step_id=claim.step_id)

        def listen(text: str, thoughts: str) -> None:
            # A new pair each time, never changed in place, so that the publishing thread sees both of one moment.
            written.texts = (text, thoughts)
            with self._changed:
                self._writing[claim.step_id] = written
                self._wake()

        return listen

    def ended(self, question_id: int) -> None:
        """Tells that a step of the question has ended, and before that all that is written."""
        with self._changed:
            self._ended.append(question_id)
            self._wake()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="telling", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _work(self) -> None:
        client = _connected(self._url)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._writing)
                # Gathers the tokens of a while into one message; the end of a step is sent at once.
                self._changed.wait_for(lambda: self._ended, TOKENS_SECONDS)
                writing, self._writing = self._writing, {}
                ended, self._ended = self._ended, []
            # Outside the lock: a slow Redis must not hold up the threads that generate.
            try:
                self._publish(client, writing, ended)
            except RedisError as error:
                logger.warning("Redis doesn't answer, so that tokens aren't sent: %s", error)
                time.sleep(AWAY_SECONDS)

    def _publish(self, client: Redis, writing: dict[int, _Written], ended: list[int]) -> None:
        messages = [(each.question_id, piece) for each in writing.values() for piece in each.pieces()]
        # Ends come last: a reader that hears one has then received all pieces that were written before it.
        messages += [(question_id, Notice()) for question_id in ended]
        with client.pipeline(transaction=False) as pipeline:
            for question_id, message in messages:
                pipeline.publish(channel_of(self._prefix, question_id), msgspec.json.encode(message))
            pipeline.execute()


class Hearing:
    """What is sent of one question, from when the block begins; nothing where Redis doesn't answer.

    url: of Redis; prefix: the beginning of the channels' names.
    """

    def __init__(self, url: str, prefix: str, question_id: int) -> None:
        self._redis = _connected(url)
        self._heard = self._redis.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
        self._channel = channel_of(prefix, question_id)
        self._away = False

    def __enter__(self) -> Self:
        try:
            self._heard.subscribe(self._channel)
        except RedisError as error:
            self._lost(error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._heard.close()
        self._redis.close()

    def wait(self, seconds: float) -> list[Notice]:
        """What is sent next, and what has come with it; nothing after so many seconds."""
        if self._away:
            time.sleep(seconds)
            return []
        until = time.monotonic() + seconds
        heard: list[Notice] = []
        try:
            while not heard and (left := until - time.monotonic()) > 0:
                heard = self._next(left)
            while heard and (further := self._next(0.0)):
                heard += further
        except RedisError as error:
            self._lost(error)
        return heard

    def _next(self, seconds: float) -> list[Notice]:
        message = self._heard.get_message(timeout=seconds)
        return [msgspec.json.decode(message["data"], type=Notice)] if message else []

    def _lost(self, error: RedisError) -> None:
        logger.warning("Redis doesn't answer, so that tokens aren't heard: %s", error)
        self._away = True
