"""What is used of kombu and Celery beyond their documentation: where a release changes it, this says what."""

import hashlib
import inspect
from typing import Any

from celery import Celery
from celery.app.amqp import AMQP
from celery.worker import strategy
from celery.worker.consumer import Consumer
from celery.worker.request import Request
from kombu.connection import Connection
from kombu.transport import redis, virtual
from kombu.utils.scheduling import round_robin_cycle

from tests.cases import each_case

SIGNATURES = [
    (redis.Channel, "_brpop_read", "(self, **options)"),
    (redis.Channel, "_put", "(self, queue, message, **kwargs)"),
    (redis.Channel, "_receive_one", "(self, c)"),
    (redis.Channel, "_deliver_fanout_message", "(self, message, exchange)"),
    (redis.Channel, "_size", "(self, queue)"),
    (redis.Channel, "_queue_bind", "(self, exchange, routing_key, pattern, queue)"),
    (redis.Channel, "_q_for_pri", "(self, queue, pri)"),
    (redis.Channel, "_get_message_priority", "(self, message, reverse=False)"),
    (redis.Channel, "_flush_brpop_reauth", "(self)"),
    (redis.Channel, "conn_or_acquire", "(self, client=None)"),
    (redis.Transport, "_deliver", "(self, message, queue)"),
    (redis.PublishBatch, "add", "(self, name, *args)"),
    (virtual.QoS, "can_consume_max_estimate", "(self)"),
    (virtual.Message, "__init__", "(self, payload, channel=None, **kwargs)"),
    (round_robin_cycle, "rotate", "(self, last_used)"),
    (Connection, "get_transport_cls", "(self)"),
]
"""Methods that are called or stand in for others, and how."""

VALUES = [
    (redis.Channel, "priority_steps", [0, 3, 6, 9]),
    (redis.Channel, "sep", "\x06\x16"),
    (redis.Channel, "global_keyprefix", ""),
    (redis.Channel, "keyprefix_queue", "_kombu.binding.%s"),
    (redis.Channel, "keyprefix_binding_permanent", "_kombu.binding_permanent.%s"),
    (redis.Transport, "Channel", redis.Channel),
    (AMQP, "Connection", Connection),
    (Celery, "amqp_cls", "celery.app.amqp:AMQP"),
]

USED = [
    (redis.Channel.__init__, ("_brpop_read", "handlers", "_queue_cycle", "ResponseError", "connection_errors")),
    (redis.Channel._brpop_start, ("_in_poll", "active_queues", "_queue_cycle", "client", "priority_steps")),
    (redis.Channel._receive, ("_receive_one",)),
    (redis.Channel._receive_one, ("_deliver_fanout_message",)),
    (redis.PublishBatch.publish, ("basic_publish",)),
    (virtual.QoS.can_consume_max_estimate, ("prefetch_count",)),
    (virtual.Channel.queue_declare, ("_size",)),
    (Connection.create_transport, ("get_transport_cls",)),
    (Celery._connection, ("amqp", "Connection")),
    (strategy.default, ("on_task_request",)),
    (Consumer.__init__, ("pool", "on_task_request")),
    (Request.__init__, ("name", "_args")),
]
"""What functions of theirs use, by the names that are used here too."""

COPIED = {
    redis.Channel._brpop_read: "c42518699709f2df90f55a048fe6346612ae5527e5c4a6819f2c0920dc62088f",
    redis.Channel._put: "1c0cf9749576614c3c62223ac59372df418ed4274d791fcd8f7e5ad7994ce72c",
}
"""Methods that `cotrail.workers.transport` does in its own way, so that it must follow where they change."""


@each_case(("owner", "name", "signature"), SIGNATURES, ids=lambda value: getattr(value, "__name__", value))
def test_methods_are_called_as_ever(owner: Any, name: str, signature: str | None) -> None:
    found = str(inspect.signature(getattr(owner, name)))
    assert signature in (None, found), f"{owner.__qualname__}.{name} is called otherwise: {found}"


@each_case(("owner", "name", "value"), VALUES, ids=str)
def test_values_are_as_ever(owner: Any, name: str, value: object) -> None:
    assert getattr(owner, name) == value, f"{owner.__qualname__}.{name} has changed"


@each_case(("function", "names"), USED, ids=lambda value: getattr(value, "__qualname__", ""))
def test_what_they_do_goes_by_the_same_names(function: Any, names: tuple[str, ...]) -> None:
    missing = set(names) - {*function.__code__.co_names, *function.__code__.co_consts}
    assert not missing, f"{function.__qualname__} no longer uses {missing}"


@each_case("method", COPIED, ids=lambda method: method.__qualname__)
def test_what_is_done_in_an_own_way_is_done_there_as_ever(method: Any) -> None:
    digest = hashlib.sha256(inspect.getsource(method).encode()).hexdigest()
    assert digest == COPIED[method], f"kombu has changed {method.__qualname__}: compare it with workers/transport.py"
