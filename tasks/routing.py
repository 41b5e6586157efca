"""Which queue a step belongs into, and how its message gets there."""

import logging
from collections.abc import Sequence
from uuid import uuid4

from celery import current_app
from kombu.connection import Connection
from kombu.exceptions import KombuError
from kombu.messaging import Producer
from redis import RedisError

from cotrail.core.actions.registry import ACTIONS
from models.records.dispatch import Dispatch

logger = logging.getLogger(__name__)

BROKER_ERRORS = (KombuError, RedisError, OSError)
"""What a broker is known by that doesn't answer, or that refuses messages since it is full, loading or a replica."""

PATIENCE_SECONDS = 2.0
"""How long a broker has to answer that is asked whether it is there."""


def task_name(kind: str) -> str:
    """The Celery task that executes steps of a kind; its queue bears the kind's own name."""
    return f"cotrail.{kind}"


_KINDS = {task_name(kind): kind for kind in ACTIONS}


def message_of(task: str, arguments: Sequence[object]) -> Dispatch | None:
    """The message that a task was called by; None where it isn't a step's."""
    match arguments:
        case [int(step_id), int(epoch)] if task in _KINDS:
            return Dispatch(step_id, epoch, _KINDS[task])
    return None


def priority(sequence: int) -> int:
    """How soon a step's message is taken: 0 first, 9 last, in the four degrees that Celery has over Redis.

    The further a question is, the sooner it goes on. Begun questions then end before new ones begin, and a model
    meets the paragraphs of a question again while it still has them in its cache.
    """
    return max(0, 9 - 3 * (sequence // 2))


def send(messages: Sequence[Dispatch]) -> int:
    """Puts messages into their queues, all in one round trip; returns how many: none where the broker takes none.

    Nothing is lost then: the steps are recorded as ready, and the maintenance process sends them again.
    """
    if not messages:
        return 0
    try:
        with current_app.producer_or_acquire() as producer, producer.batch():
            for message in messages:
                _post(producer, message)
    except BROKER_ERRORS as error:
        logger.warning("%d steps aren't sent yet: the broker takes no messages (%s)", len(messages), error)
        return 0
    return len(messages)


def broker_problem(url: str) -> str | None:
    """Why the broker doesn't answer; None where it does. Takes a few seconds at most."""
    patience = {"socket_timeout": PATIENCE_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS}
    try:
        with Connection(url, transport_options=patience) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0)
    except BROKER_ERRORS as error:
        return str(error)
    return None


def _post(producer: Producer, message: Dispatch) -> None:
    """As `Celery.send_task` does it, without declaring the queue each time: it is there once a worker listens."""
    amqp, name, arguments = current_app.amqp, task_name(message.kind), (message.step_id, message.epoch)
    task = amqp.create_task_message(
        str(uuid4()), name, arguments, {}, ignore_result=True, argsrepr=str(arguments), kwargsrepr="{}"
    )
    amqp.send_task_message(producer, name, task, queue=message.kind, declare=[], priority=priority(message.sequence))
