"""Hearing what workers tell of a question (`cotrail.tasks.telling`)."""

import logging
import time
from types import TracebackType
from typing import Self

import msgspec
from redis import Redis, RedisError

from cotrail.tasks.telling import PATIENCE_SECONDS, Told, channel_of

logger = logging.getLogger(__name__)


class Hearing:
    """What is told of one question, from when the block begins; nothing where Redis doesn't answer.

    url: of Redis; prefix: the beginning of the channels' names.
    """

    def __init__(self, url: str, prefix: str, question_id: int) -> None:
        self._redis = Redis.from_url(
            url.replace("redis+socket://", "unix://", 1),
            socket_timeout=PATIENCE_SECONDS,
            socket_connect_timeout=PATIENCE_SECONDS,
        )
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

    def wait(self, seconds: float) -> list[Told]:
        """What is told next, and what has come with it; nothing after so many seconds."""
        if self._away:
            time.sleep(seconds)
            return []
        until = time.monotonic() + seconds
        told: list[Told] = []
        try:
            while not told and (left := until - time.monotonic()) > 0:
                told = self._next(left)
            while told and (further := self._next(0.0)):
                told += further
        except RedisError as error:
            self._lost(error)
        return told

    def _next(self, seconds: float) -> list[Told]:
        message = self._heard.get_message(timeout=seconds)
        return [msgspec.json.decode(message["data"], type=Told)] if message else []

    def _lost(self, error: RedisError) -> None:
        logger.warning("Redis doesn't answer, so that tokens aren't heard: %s", error)
        self._away = True
