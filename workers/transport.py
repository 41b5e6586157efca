"""How messages are written, and how a worker takes them out of Redis: several at once while it is busy."""

from typing import Any

import msgspec
from kombu import serialization
from kombu.transport import TRANSPORT_ALIASES, redis

SCHEMES = ("redis", "rediss")


class Channel(redis.Channel):
    """Celery's channel asks for one message, waits for it, hands it on and asks for the next.

    This one then takes further messages of the same queue and priority: half as many as the process already has, or
    half of what it may still have, whichever is less. Where there is little to do, workers so share it one by one.
    """

    def _brpop_read(self, **options: Any) -> Any:
        taken = super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        queue, priority = self.connection.delivered
        if queue in self.active_queues:  # nobody has told the worker meanwhile to leave the queue
            self._take(queue, priority)
        return taken

    def _take(self, queue: str, priority: int) -> None:
        room = self.qos.can_consume_max_estimate() or 0
        if count := min(room, self.qos.prefetch_count - room) // 2:
            key = self._q_for_pri(queue, priority)  # type: ignore[no-untyped-call]
            for message in self.client.rpop(key, count) or ():
                self.connection._deliver(msgspec.json.decode(message), queue)


class Transport(redis.Transport):
    """Celery's transport over Redis with that channel.

    delivered: the queue and the priority of the message that was handed on last.
    """

    Channel = Channel
    delivered: tuple[str, int]

    def _deliver(self, message: dict[str, Any], queue: str) -> None:
        super()._deliver(message, queue)  # type: ignore[no-untyped-call]
        self.delivered = queue, message["properties"].get("priority") or 0


def register() -> None:
    """Has Celery use it for each URL of Redis, and msgspec for JSON, which takes a fraction of the time."""
    for scheme in SCHEMES:
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{Transport.__qualname__}"
    vars(redis).update(dumps=_encode, loads=msgspec.json.decode)
    serialization.register("json", _encode, msgspec.json.decode, "application/json", "utf-8")


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()
