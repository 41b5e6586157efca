"""Which queue a step belongs into, and how its message gets there."""

import logging
from collections.abc import Sequence
from uuid import uuid4

from celery import current_app
from kombu.exceptions import BatchPublishError, OperationalError
from kombu.messaging import Producer

from models.advancing import Dispatch

logger = logging.getLogger(__name__)


def task_name(kind: str) -> str:
    """The Celery task that executes steps of a kind; its queue bears the kind's own name."""
    return f"cotrail.{kind}"


def priority(sequence: int) -> int:
    """How soon a step's message is taken: 0 first, 9 last, in the four degrees that Celery has over Redis.

    The further a question is, the sooner it goes on. Begun questions then end before new ones begin, and a model
    meets the paragraphs of a question again while it still has them in its cache.
    """
    return max(0, 9 - 3 * (sequence // 2))


def send(messages: Sequence[Dispatch]) -> int:
    """Puts messages into their queues, all in one round trip; returns how many: none where the broker doesn't answer.

    Nothing is lost then: the steps are recorded as ready, and the maintenance process sends them again.
    """
    if not messages:
        return 0
    try:
        with current_app.producer_or_acquire() as producer, producer.batch():
            for message in messages:
                _post(producer, message)
    except (OperationalError, BatchPublishError) as error:
        logger.warning("%d steps aren't sent yet: the broker doesn't answer (%s)", len(messages), error)
        return 0
    return len(messages)


def _post(producer: Producer, message: Dispatch) -> None:
    """As `Celery.send_task` does it, without declaring the queue each time: it is there once a worker listens."""
    amqp, name, arguments = current_app.amqp, task_name(message.kind), (message.step_id, message.epoch)
    task = amqp.create_task_message(
        str(uuid4()), name, arguments, {}, ignore_result=True, argsrepr=str(arguments), kwargsrepr="{}"
    )
    amqp.send_task_message(producer, name, task, queue=message.kind, declare=[], priority=priority(message.sequence))
