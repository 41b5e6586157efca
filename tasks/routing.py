"""Routing of steps to the queues of their kinds, and sending of their messages."""

import logging
from collections.abc import Sequence
from uuid import uuid4

from celery import current_app
from kombu.exceptions import KombuError
from kombu.messaging import Producer
from redis import RedisError

from cotrail.core.actions.registry import KINDS
from cotrail.models.records.steps import Dispatch

logger = logging.getLogger(__name__)

BROKER_ERRORS = (KombuError, RedisError, OSError)
"""Errors of a broker that doesn't answer, or that refuses messages since it is full, loading or a replica."""

TASKS = "cotrail."
"""The beginning of the names of all tasks."""

_SERVED = ".served"


def task_name(kind: str) -> str:
    """The Celery task that executes steps of a kind."""
    return f"{TASKS}{kind}"


def queues_of(kind: str) -> dict[str, tuple[bool, ...]]:
    """The queues of a kind's steps, and for each of them whether the models of its runs are served.

    Steps that a language model carries out have two: those of served models never wait for a model that computes.
    """
    if KINDS[kind].role == "generation":
        return {kind: (False,), served_queue(kind): (True,)}
    return {kind: (False, True)}


def served_queue(kind: str) -> str:
    """The queue of a kind's steps whose language model is served."""
    return f"{kind}{_SERVED}"


def kind_in(queue: str) -> str | None:
    """The kind of the steps whose queue this is; None where it is no queue of steps."""
    kind = queue.removesuffix(_SERVED)
    return kind if kind in KINDS and queue in queues_of(kind) else None


def message_of(task: str, arguments: Sequence[object]) -> Dispatch | None:
    """The message of a task's call; None where the task isn't a step."""
    kind = task.removeprefix(TASKS)
    match arguments:
        case [int(step_id), int(epoch)] if kind in KINDS and task == task_name(kind):
            return Dispatch(step_id, epoch, kind)
    return None


LEVELS = (0, 2, 4, 6, 8)
"""The levels of priority that queues have, the first one first: a list in Redis each."""


def priority(message: Dispatch) -> int:
    """The level of a step's message.

    The first is that of questions that somebody asked and waits for. Of the others, the further one is, the sooner its
    next step is taken. Begun questions then end before new ones begin, and a model sees the paragraphs of a question
    again while its prefix cache still holds them.
    """
    if message.asked:
        return LEVELS[0]
    return LEVELS[-1 - min(message.sequence // 2, len(LEVELS) - 2)]


def send(messages: Sequence[Dispatch]) -> int:
    """Puts messages into their queues, all in one round trip; returns how many: 0 where the broker takes none.

    Nothing is lost then, as the store is the outbox: the steps are recorded as ready, and the maintenance process sends
    them again. So it is with steps of a kind that this process doesn't know: one that was started later sends them.
    """
    sendable = [message for message in messages if message.kind in KINDS]
    if unknown := sorted({message.kind for message in messages} - KINDS.keys()):
        logger.warning("this process knows no %s steps and doesn't send them; restart it", " or ".join(unknown))
    if not sendable:
        return 0
    try:
        with current_app.producer_or_acquire() as producer, producer.batch():
            for message in sendable:
                _post(producer, message)
    except BROKER_ERRORS as error:
        logger.warning("%d steps aren't sent yet: the broker takes no messages (%s)", len(sendable), error)
        return 0
    return len(sendable)


def _post(producer: Producer, message: Dispatch) -> None:
    """Sends one message as `Celery.send_task` does, but without declaring the queue: a worker does as it starts."""
    amqp, name, arguments = current_app.amqp, task_name(message.kind), (message.step_id, message.epoch)
    task = amqp.create_task_message(
        str(uuid4()),
        name,
        arguments,
        {},
        ignore_result=True,
        argsrepr=message.about,
        kwargsrepr=f"step_id={message.step_id}, epoch={message.epoch}",
    )
    queue = next(queue for queue, served in queues_of(message.kind).items() if message.served in served)
    amqp.send_task_message(producer, name, task, queue=queue, declare=[], priority=priority(message))
