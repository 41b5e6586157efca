"""Messages are taken several at once, in their order, none twice, and never more than a worker may hold."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from kombu.connection import Connection
from kombu.entity import Queue
from kombu.message import Message
from kombu.messaging import Consumer, Producer

from tasks.settings import Settings
from workers.app import app
from workers.transport import Transport

FIRST, LAST = 0, 9
"""The priorities of what is taken first and last."""


class Worker:
    """A consumer that acknowledges what it has received when it is told to."""

    def __init__(self, connection: Connection, queue: Queue, prefetch: int) -> None:
        self.held: list[Message] = []
        self.bodies: list[Any] = []
        self.reads = 0
        self._connection = connection
        self._consumer = Consumer(connection, [queue], on_message=self._receive, prefetch_count=prefetch)
        self._consumer.consume()

    def read(self) -> None:
        self.reads += 1
        self._connection.drain_events(timeout=10)

    def done(self, count: int) -> None:
        for message in self.held[:count]:
            message.ack()
        del self.held[:count]

    def leave(self) -> None:
        """Waits for messages in vain, and is told to leave the queue while it does."""
        with pytest.raises(TimeoutError):
            self._connection.drain_events(timeout=0.01)
        self._consumer.cancel()

    def _receive(self, message: Message) -> None:
        self.held.append(message)
        self.bodies.append(message.payload)


@pytest.fixture
def open_connection(servers: Settings) -> Iterator[Callable[[], Connection]]:
    options = dict(app.conf.broker_transport_options, global_keyprefix=f"{uuid4()}:")
    opened = []

    def connection() -> Connection:
        opened.append(Connection(servers.broker, transport_options=options))
        return opened[-1]

    yield connection
    for each in opened:
        each.release()


def publish(connection: Connection, queue: Queue, bodies: range, priority: int = LAST) -> None:
    producer = Producer(connection)
    for body in bodies:
        producer.publish(body, routing_key=queue.name, exchange=queue.exchange, declare=[queue], priority=priority)


def waiting(connection: Connection, queue: Queue) -> int:
    return int(queue(connection.default_channel).queue_declare().message_count)


def test_a_worker_takes_what_it_may_hold_in_few_reads_and_in_order(open_connection: Callable[[], Connection]) -> None:
    queue, connection = Queue("reason"), open_connection()
    publish(connection, queue, range(40, 100), LAST)
    publish(connection, queue, range(40), FIRST)
    worker = Worker(open_connection(), queue, prefetch=30)
    while len(worker.held) < 30:
        worker.read()
    assert worker.bodies == list(range(30))
    assert worker.reads < 15
    assert waiting(connection, queue) == 70
    while len(worker.bodies) < 100:
        worker.done(7)
        worker.read()
        assert len(worker.held) <= 30
    assert worker.bodies == list(range(100))
    assert waiting(connection, queue) == 0


def test_workers_with_little_to_do_share_it(open_connection: Callable[[], Connection]) -> None:
    queue, connection = Queue("reason"), open_connection()
    workers = [Worker(open_connection(), queue, prefetch=64) for _ in range(2)]
    publish(connection, queue, range(24))
    while sum(len(worker.bodies) for worker in workers) < 24:
        for worker in workers:
            if waiting(connection, queue) or not worker.reads:
                worker.read()
    assert sorted(body for worker in workers for body in worker.bodies) == list(range(24))
    assert min(len(worker.bodies) for worker in workers) >= 8


@pytest.mark.parametrize("prefetch", [1, 2])
def test_a_worker_of_one_or_two_steps_takes_them_one_by_one(
    open_connection: Callable[[], Connection], prefetch: int
) -> None:
    queue, connection = Queue("reason"), open_connection()
    publish(connection, queue, range(6))
    worker = Worker(open_connection(), queue, prefetch)
    for number in range(1, 7):
        worker.read()
        assert len(worker.bodies) == number
        worker.done(1)


def test_a_worker_that_leaves_the_queue_puts_back_what_it_holds_and_takes_nothing_along(
    open_connection: Callable[[], Connection],
) -> None:
    queue, connection, its_own = Queue("reason"), open_connection(), open_connection()
    worker = Worker(its_own, queue, prefetch=64)
    publish(connection, queue, range(20))
    while len(worker.bodies) < 20:
        worker.read()
    worker.leave()
    publish(connection, queue, range(20, 40))
    its_own.release()
    assert worker.bodies == list(range(20))
    assert waiting(connection, queue) == 40


@pytest.mark.parametrize("url", ["redis://host/0", "rediss://host/0", "redis+socket:///a/socket"])
def test_the_app_uses_it_for_each_url_of_redis(url: str) -> None:
    assert isinstance(app.connection_for_read(url).transport, Transport)


def test_messages_are_json_that_msgspec_writes(open_connection: Callable[[], Connection]) -> None:
    connection, queue = open_connection(), Queue("written")
    with Producer(connection) as producer:
        producer.publish([[1, 2], {}, {"chain": None}], routing_key="written", declare=[queue], serializer="json")
    worker = Worker(connection, queue, prefetch=1)
    worker.read()
    assert bytes(worker.held[0].body) == b'[[1,2],{},{"chain":null}]'
    assert worker.bodies == [[[1, 2], {}, {"chain": None}]]
