"""Which queue a step belongs into, and how its message gets there."""

import logging

from celery import current_app
from kombu.exceptions import OperationalError

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


def send(message: Dispatch) -> bool:
    """Puts a message into its queue; False where the broker doesn't answer.

    Nothing is lost then: the step is recorded as ready, and the maintenance process sends it again.
    """
    try:
        current_app.send_task(
            task_name(message.kind),
            (message.step_id, message.epoch),
            queue=message.kind,
            priority=priority(message.sequence),
            ignore_result=True,
        )
    except OperationalError as error:
        logger.warning("step %d isn't sent yet: the broker doesn't answer (%s)", message.step_id, error)
        return False
    return True
