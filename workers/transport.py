"""Celery's transport over Redis for this app: it takes several messages at once, and skips unreadable ones.

Only connections of this app use it (`Amqp`). `tests/unit/test_kombu.py` checks the undocumented parts of kombu that it
uses against the installed version.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from queue import Empty
from typing import Any, TypeVar

import msgspec
from celery.app.amqp import AMQP
from kombu import connection
from kombu.transport import redis
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import loads

from cotrail.core.actions.registry import KINDS
from cotrail.errors import InputError
from cotrail.tasks.routing import kind_in, queues_of, read_message

Done = TypeVar("Done")

logger = logging.getLogger(__name__)

LOGGED_SKIPS = 10
"""The number of skipped messages logged one by one; after them only the 16th, the 32nd, the 64th and so on."""

UNREADABLE_SUFFIX = ".unreadable"
"""Suffix of the new name of a key that holds something else than a queue, or than a table of queues."""


class Skipped:
    """Counter of the messages that this process couldn't read."""

    count = 0

    def add(self, what: str, error: Exception) -> None:
        """Count a message and log it, unless there are too many."""
        self.count += 1
        if self.count <= LOGGED_SKIPS or self.count.bit_count() == 1:
            logger.warning("%s is skipped (%d so far): %s", what, self.count, error)


skipped = Skipped()

WRONG_TYPE = "WRONGTYPE"
"""Part of Redis's error where a key is of another type than a command needs."""


class Channel(redis.Channel):
    """Channel that takes several messages at once.

    Kombu's channel waits for one message, hands it on and asks for the next. This one then takes further messages of
    the same queue and priority: half as many as the process has already, or half of what it may still have, whichever
    is less. So workers share a short queue message by message, and empty a long one fast. A message in a step's queue
    that isn't that of such a step is dropped.
    """

    def withdraw(self, step_ids: Collection[int]) -> int:
        """Remove the messages of these steps from their queues; returns how many there were.

        A message that a worker takes first does no harm: its claim finds that the step was cancelled.
        """
        queues = [queue for kind in KINDS for queue in queues_of(kind)]
        return sum(self._withdraw(queue, key, step_ids) for queue in queues for key in self._lists(queue))

    def _withdraw(self, queue: str, key: str, step_ids: Collection[int]) -> int:
        name = f"{self.global_keyprefix}{key}"
        raws = self._mended(self._lists(queue), self.client.lrange, name, 0, -1)
        messages = [raw for raw in raws if _step_id(raw, queue) in step_ids]
        return sum(self.client.lrem(name, 1, raw) for raw in messages)

    def _put(self, queue: str, message: dict[str, Any], **options: Any) -> None:
        """Put a message as kombu does for queues that don't expire, but encode it with msgspec."""
        if kind_in(queue) is None:
            super()._put(queue, message, **options)
            return
        key = self._q_for_pri(queue, self._get_message_priority(message))
        encoded = msgspec.json.encode(message)
        if batch := options.get("_publish_batch"):
            batch.add("lpush", key, encoded)
            return
        with self.conn_or_acquire() as client:
            client.lpush(key, encoded)

    def _brpop_read(self, **options: Any) -> bool:
        """Receive as kombu does, except for what is done with the message."""
        try:
            try:
                taken = self.client.parse_response(self.client.connection, "BRPOP", **options)
            except self.connection_errors:
                self.client.connection.disconnect()
                raise
            except self.ResponseError as error:
                # BRPOP names many keys, and its error doesn't say which of them is of another type.
                for queue in self.active_queues:
                    self._mend(self._lists(queue), error)
                taken = ()
            if not taken:
                raise Empty
            self._receive_from(bytes_to_str(taken[0]), taken[1])
            return True
        finally:
            self._in_poll = None  # type: ignore[assignment]
            self._flush_brpop_reauth()

    def _receive_from(self, key: str, raw: bytes) -> None:
        queue = key.rsplit(self.sep, 1)[0]
        self._queue_cycle.rotate(queue)
        self._hand_on(queue, raw)
        if queue in self.active_queues:  # unless the worker was asked meanwhile to stop consuming it
            room = self.qos.can_consume_max_estimate() or 0
            if count := min(room, self.qos.prefetch_count - room) // 2:
                for further in self.client.rpop(key, count) or ():
                    self._hand_on(queue, further)

    def _hand_on(self, queue: str, raw: bytes) -> None:
        if kind_in(queue) is None:  # an answer to `celery inspect`
            self.connection._deliver(loads(bytes_to_str(raw)), queue)
            return
        try:
            message, _ = read_message(raw, queue)
        except InputError as error:
            skipped.add(f"a message in the queue {queue}", error)
        else:
            self.connection._deliver(message, queue)

    def _receive_one(self, client: Any) -> Any:
        try:
            return super()._receive_one(client)
        except RecursionError as error:
            skipped.add("a broadcast", error)
            return None

    def _deliver_fanout_message(self, message: Any, exchange: str) -> bool:
        try:
            return bool(super()._deliver_fanout_message(message, exchange))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            skipped.add("a broadcast", error)
            return False

    def _size(self, queue: str) -> int:
        return int(self._mended(self._lists(queue), super()._size, queue))

    def _queue_bind(self, exchange: str, *arguments: Any) -> None:
        tables = [form % exchange for form in (self.keyprefix_queue, self.keyprefix_binding_permanent)]
        self._mended(dict.fromkeys(tables, "set"), super()._queue_bind, exchange, *arguments)

    def _lists(self, queue: str) -> dict[str, str]:
        """Return the keys of a queue's messages, one for each priority, and their type."""
        return {self._q_for_pri(queue, step): "list" for step in self.priority_steps}

    def _mended(self, types: Mapping[str, str], work: Callable[..., Done], *arguments: Any) -> Done:
        """Do work on these keys, a second time where one had to be moved out of the way."""
        try:
            return work(*arguments)
        except self.ResponseError as error:
            self._mend(types, error)
            return work(*arguments)

    def _mend(self, types: Mapping[str, str], error: Exception) -> None:
        """Rename those of the keys that are of another type, which would make their queue useless."""
        if WRONG_TYPE not in str(error):
            raise error
        with self.conn_or_acquire() as client:
            for key, wanted in types.items():
                name = f"{self.global_keyprefix}{key}"
                if (type_there := bytes_to_str(client.type(name))) not in (wanted, "none"):
                    logger.warning(
                        "in Redis %r is a %s and no %s: it is renamed *%s", name, type_there, wanted, UNREADABLE_SUFFIX
                    )
                    client.rename(name, f"{name}{UNREADABLE_SUFFIX}")


class Transport(redis.Transport):
    """Kombu's transport over Redis with that channel."""

    Channel = Channel


class Connection(connection.Connection):
    """Connection that uses this transport whatever the URL's scheme: kombu would pick one by the scheme."""

    def get_transport_cls(self) -> type[Transport]:
        """The transport of every connection of the app."""
        return Transport


class Amqp(AMQP):
    """Celery's messaging over such connections."""

    Connection = Connection


def _step_id(raw: bytes, queue: str) -> int | None:
    """Return the step that a message is about; None where it is unreadable, which a worker will find too."""
    try:
        return read_message(raw, queue)[1].step_id
    except InputError:
        return None
