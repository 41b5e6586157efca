"""Messages are taken several at once, in their order, none twice, and never more than a worker may hold.

And what isn't a step's message is skipped.
"""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from kombu.entity import Queue
from kombu.message import Message
from kombu.messaging import Consumer
from redis import Redis

from cotrail.configuration.settings import Settings
from cotrail.models.records.steps import Dispatch
from cotrail.tasks import routing
from cotrail.workers.app import app
from cotrail.workers.transport import LOGGED_SKIPS, UNREADABLE_SUFFIX, Connection, Skipped, Transport
from tests.faults.stacked import ROOT
from tests.garbage import GARBAGE

FIRST, LAST = 9, 0
"""How far the questions are whose messages are taken first and last."""

REASON = Queue("reason")


class Worker:
    """A consumer that acknowledges what it has received when it is told to."""

    def __init__(self, connection: Connection, prefetch: int) -> None:
        self.held: list[Message] = []
        self.steps: list[int] = []
        self.reads = 0
        self._connection = connection
        self._consumer = Consumer(
            connection, [REASON], on_message=self._receive, prefetch_count=prefetch, accept=app.conf.accept_content
        )
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
        self.steps.append(message.payload[0][0])


@pytest.fixture
def prefix() -> str:
    return f"{uuid4()}:"


@pytest.fixture
def open_connection(servers: Settings, prefix: str) -> Iterator[Callable[[], Connection]]:
    options = dict(app.conf.broker_transport_options, global_keyprefix=prefix)
    opened = []

    def connection() -> Connection:
        opened.append(Connection(servers.broker, transport_options=options))
        return opened[-1]

    yield connection
    for each in opened:
        each.release()


@pytest.fixture
def redis(servers: Settings) -> Iterator[Redis]:
    with Redis(unix_socket_path=str(servers.socket_path / "redis.sock")) as client:
        yield client


def publish(connection: Connection, steps: range, sequence: int = LAST) -> None:
    producer = app.amqp.Producer(connection, auto_declare=False)
    for step_id in steps:
        routing._post(producer, Dispatch(step_id, 0, "reason", sequence))


def waiting(connection: Connection) -> int:
    return int(REASON(connection.default_channel).queue_declare().message_count)


def withdraw(connection: Connection, step_ids: list[int]) -> int:
    channel: Any = connection.default_channel
    return int(channel.withdraw(step_ids))


def test_a_worker_takes_what_it_may_hold_in_few_reads_and_in_order(open_connection: Callable[[], Connection]) -> None:
    connection = open_connection()
    publish(connection, range(41, 101), LAST)
    publish(connection, range(1, 41), FIRST)
    worker = Worker(open_connection(), prefetch=30)
    while len(worker.held) < 30:
        worker.read()
    assert worker.steps == list(range(1, 31))
    assert worker.reads < 15
    assert waiting(connection) == 70
    while len(worker.steps) < 100:
        worker.done(7)
        worker.read()
        assert len(worker.held) <= 30
    assert worker.steps == list(range(1, 101))
    assert waiting(connection) == 0


def test_workers_with_little_to_do_share_it(open_connection: Callable[[], Connection]) -> None:
    connection = open_connection()
    workers = [Worker(open_connection(), prefetch=64) for _ in range(2)]
    publish(connection, range(1, 25))
    while sum(len(worker.steps) for worker in workers) < 24:
        for worker in workers:
            if waiting(connection) or not worker.reads:
                worker.read()
    assert sorted(step for worker in workers for step in worker.steps) == list(range(1, 25))
    assert min(len(worker.steps) for worker in workers) >= 8


@pytest.mark.parametrize("prefetch", [1, 2])
def test_a_worker_of_one_or_two_steps_takes_them_one_by_one(
    open_connection: Callable[[], Connection], prefetch: int
) -> None:
    publish(open_connection(), range(1, 7))
    worker = Worker(open_connection(), prefetch)
    for number in range(1, 7):
        worker.read()
        assert len(worker.steps) == number
        worker.done(1)


def test_a_worker_that_leaves_the_queue_puts_back_what_it_holds_and_takes_nothing_along(
    open_connection: Callable[[], Connection],
) -> None:
    connection, its_own = open_connection(), open_connection()
    worker = Worker(its_own, prefetch=64)
    publish(connection, range(1, 21))
    while len(worker.steps) < 20:
        worker.read()
    worker.leave()
    publish(connection, range(21, 41))
    its_own.release()
    assert worker.steps == list(range(1, 21))
    assert waiting(connection) == 40
    again = Worker(open_connection(), prefetch=64)
    while len(again.steps) < 40:
        again.read()
    assert sorted(again.steps) == list(range(1, 41))


@pytest.mark.parametrize(
    "url", ["redis://host/0", "rediss://host/0?ssl_cert_reqs=required", "redis+socket:///a/socket"]
)
def test_the_app_uses_it_for_each_url_of_redis(url: str) -> None:
    connection = app.connection_for_read(url)
    assert isinstance(connection.transport, Transport)
    assert isinstance(connection.clone().transport, Transport)


def test_messages_are_json_that_msgspec_writes(open_connection: Callable[[], Connection]) -> None:
    publish(open_connection(), range(1, 2))
    worker = Worker(open_connection(), prefetch=1)
    worker.read()
    assert bytes(worker.held[0].body) == b'[[1,0],{},{"callbacks":null,"errbacks":null,"chain":null,"chord":null}]'


def test_what_is_no_message_of_a_step_is_skipped_and_told_of(
    open_connection: Callable[[], Connection],
    prefix: str,
    redis: Redis,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cotrail.workers.transport.skipped", Skipped())
    connection = open_connection()
    for step_id, garbage in enumerate(GARBAGE.values(), 1):
        redis.lpush(f"{prefix}reason", garbage)
        publish(connection, range(step_id, step_id + 1))
    worker = Worker(open_connection(), prefetch=16)
    while len(worker.steps) < len(GARBAGE):
        worker.read()
        worker.done(len(worker.held))
    assert worker.steps == list(range(1, len(GARBAGE) + 1))
    assert waiting(connection) == 0
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == LOGGED_SKIPS + 2  # and the 16th and the 32nd
    assert max(map(len, told)) < 300


@pytest.mark.parametrize("name", GARBAGE)
def test_messages_are_withdrawn_from_among_garbage(
    open_connection: Callable[[], Connection], prefix: str, redis: Redis, name: str
) -> None:
    connection = open_connection()
    publish(connection, range(1, 4))
    redis.rpush(f"{prefix}reason", GARBAGE[name])
    assert withdraw(connection, [1, 3, 4]) == 2
    assert waiting(connection) == 2


@pytest.mark.parametrize("type_", ["string", "set", "hash", "zset", "stream"])
def test_a_key_of_another_type_is_moved_out_of_the_way(
    open_connection: Callable[[], Connection], prefix: str, redis: Redis, type_: str
) -> None:
    def spoil(*names: str) -> None:
        for name in names:
            redis.delete(f"{prefix}{name}")
            {
                "string": lambda key: redis.set(key, "x"),
                "set": lambda key: redis.sadd(key, "x"),
                "hash": lambda key: redis.hset(key, "x", "y"),
                "zset": lambda key: redis.zadd(key, {"x": 1}),
                "stream": lambda key: redis.xadd(key, {"x": "y"}),
            }[type_](f"{prefix}{name}")

    connection = open_connection()
    tables = () if type_ == "set" else ("_kombu.binding.e", "_kombu.binding_permanent.e")
    spoil("reason", "reason\x06\x166", *tables)
    Queue("reason", exchange="e", routing_key="reason")(connection.default_channel).declare()
    assert waiting(connection) == 0
    spoil("read", "retrieve")
    assert withdraw(connection, [1]) == 0
    worker = Worker(open_connection(), prefetch=8)
    spoil("reason", "reason\x06\x162")
    with pytest.raises(TimeoutError):
        worker._connection.drain_events(timeout=0.5)
    publish(connection, range(1, 3))
    while len(worker.steps) < 2:
        worker.read()
    aside = {key.decode().removeprefix(prefix) for key in redis.scan_iter(f"{prefix}*{UNREADABLE_SUFFIX}")}
    expected = {"reason", "reason\x06\x166", "reason\x06\x162", "read", "retrieve", *tables}
    assert aside == {f"{name}{UNREADABLE_SUFFIX}" for name in expected}


def test_another_app_of_the_process_is_left_as_it_was() -> None:
    code = """
import datetime, uuid
from celery import Celery
from kombu import serialization
from kombu.transport import TRANSPORT_ALIASES, redis

def state():
    value = [datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc), uuid.UUID(int=7), b"x"]
    type_, encoding, data = serialization.dumps(value, "json")
    back = serialization.loads(data, type_, encoding)
    transport = type(other.connection().transport)
    return data, back, back == value, dict(TRANSPORT_ALIASES), redis.dumps, redis.loads, transport

other = Celery("other", broker="redis://localhost")
before = state()
import cotrail.workers.app
assert before == state(), (before, state())
assert before[2] and before[-1] is redis.Transport
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
