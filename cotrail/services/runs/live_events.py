"""What followers receive: what is recorded, how far a run is, that it has ended, and tokens as they are written."""

import logging
from collections.abc import Callable, Mapping
from threading import Condition, Thread
from typing import Any

import msgspec
from msgspec import Struct
from redis import Redis, RedisError

from cotrail.configuration.settings import BETWEEN_BROKERS, settings
from cotrail.models.queries.events import Event, QuestionChanged, StepEnded
from cotrail.services.operations.event_names import END


class Progressed(Event, frozen=True, kw_only=True, tag="progress"):
    """How far a run is: its state, its questions by status, the number of its steps that are done."""

    run: str
    state: str
    questions: Mapping[str, int]
    steps: int


class Token(Event, frozen=True, kw_only=True, tag="token"):
    """A piece of the text that a model is writing; step: the row of the step, whose end tells the whole text."""

    step: int
    text: str


class Ended(Event, frozen=True, kw_only=True, tag=END):
    """The last event: nothing more will happen unless a person acts; state: of the run, or of the question followed."""

    state: str


LiveEvent = StepEnded | QuestionChanged | Progressed | Token | Ended


# Tokens as models write them: workers publish those of followed questions over Redis, and nothing records them.
#
# The channel of a question is `{broker_prefix}tokens:{question}`, by the question's row; a message is the JSON object
# `{"step": ROW, "text": "..."}`. While Redis is away, followers see each text once its step has ended.

logger = logging.getLogger(__name__)

LISTEN_SECONDS = 0.1
"""How long a question that is newly followed waits to be listened to."""

AWAY_SECONDS = 2.0
"""How long Redis isn't asked again after it didn't answer."""

PATIENCE_SECONDS = 5.0

Tell = Callable[[int, Token], None]
"""Tells the followers of a question of a token."""


class Written(Struct, frozen=True):
    """A message: a piece of the text of a step."""

    step: int
    text: str


def channel(question: int) -> str:
    """The channel of a question's tokens."""
    return f"{settings().broker_prefix}tokens:{question}"


class Tokens:
    """Listens for all followed questions of a process, over one connection, while there are any."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._changed = Condition()
        self._questions: frozenset[int] = frozenset()
        self._thread: Thread | None = None

    def listen(self, questions: frozenset[int]) -> None:
        """Listen to the tokens of these questions, and of no others."""
        with self._changed:
            self._questions = questions
            self._changed.notify()
            if questions and self._thread is None:
                self._thread = Thread(target=self._listen, name="tokens", daemon=True)
                self._thread.start()

    def _listen(self) -> None:
        """Listen until no question is followed any more."""
        while not self._is_over():
            try:
                self._receive()
            except (RedisError, OSError) as error:
                logger.warning("tokens aren't shown as they are written: Redis doesn't answer (%s)", error)
                with self._changed:
                    self._changed.wait_for(lambda: not self._questions, AWAY_SECONDS)

    def _is_over(self) -> bool:
        with self._changed:
            if self._questions:
                return False
            self._thread = None
            return True

    def _receive(self) -> None:
        url = settings().broker.split(BETWEEN_BROKERS)[0].replace("redis+socket://", "unix://", 1)
        heard: dict[str, int] = {}
        with Redis.from_url(url, socket_connect_timeout=PATIENCE_SECONDS) as redis, redis.pubsub() as listening:
            while asked := {channel(question): question for question in self._questions}:
                if further := asked.keys() - heard.keys():
                    listening.subscribe(*further)
                if left := heard.keys() - asked.keys():
                    listening.unsubscribe(*left)
                heard = asked
                self._take(listening.get_message(ignore_subscribe_messages=True, timeout=LISTEN_SECONDS), heard)

    def _take(self, message: dict[str, Any] | None, heard: dict[str, int]) -> None:
        question = heard.get(message["channel"].decode()) if message else None
        if message is None or question is None:
            return
        try:
            written = msgspec.json.decode(message["data"], type=Written)
        except msgspec.DecodeError:
            return
        self._tell(question, Token(step=written.step, text=written.text))
