"""Steps of served models in a generation worker: they have queues and threads of their own.

So they never wait for a model that computes in the process, and each of the two takes only as many messages as it has
threads for: what waits is left to other workers. Steps of hosted models, whose accounts bound them, don't count.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from celery import Celery
from celery.bootsteps import StartStopStep
from celery.concurrency.thread import TaskPool
from celery.exceptions import TaskRevokedError
from celery.worker import WorkController
from celery.worker.components import Pool
from celery.worker.consumer import Consumer, Tasks
from celery.worker.request import Request
from kombu import messaging
from kombu.common import ignore_errors
from kombu.entity import Queue

from cotrail.core.actions.registry import carried_out_by
from cotrail.tasks.routing import served_queue

THREAD_COUNT = 256
"""The number of steps of served models that a worker carries out at once, without those of hosted ones.

It is what one server is asked at once unless `in_flight` says otherwise.
"""

MOST_THREADS = 4096
"""The number of threads, which begin as they are needed; most only wait, for a server or for an account's limits."""

ROOM_SECONDS = 0.2
"""How often it is looked how many steps of hosted models are under way, and as many more messages are let in."""


class ServedPool(StartStopStep):  # type: ignore[misc, unused-ignore]
    """Boot step of the worker: the threads."""

    requires = (Pool,)

    def include_if(self, worker: WorkController) -> bool:
        """Include this step in generation workers whose threads execute the tasks."""
        return issubclass(worker.pool_cls, TaskPool) and bool(_queues(worker.app))

    def create(self, worker: WorkController) -> TaskPool:
        """Make the threads' pool."""
        worker.served_pool = TaskPool(limit=MOST_THREADS, app=worker.app)
        return worker.served_pool

    def info(self, worker: WorkController) -> dict[str, Any]:
        """Return what `celery inspect stats` says of the threads."""
        return {"served_pool": worker.served_pool.info}


class ServedConsumer(StartStopStep):  # type: ignore[misc, unused-ignore]
    """Boot step of the consumer: takes the messages of the queues of served models.

    It has a channel of its own, and so a limit of its own to the messages that it holds.
    """

    requires = (Tasks,)
    messages: messaging.Consumer | None = None
    channel: Any = None

    def include_if(self, consumer: Consumer) -> bool:
        """Include this step where there are threads for them."""
        return hasattr(consumer.controller, "served_pool")

    def start(self, consumer: Consumer) -> None:
        """Begin to take messages."""
        self.channel = consumer.connection.channel()
        self.channel.basic_qos(0, THREAD_COUNT, False)
        handle = consumer.create_task_handler()
        self.messages = messaging.Consumer(self.channel, _queues(consumer.app), on_message=handle)
        self.messages.consume()

    def make_room(self, hosted: int) -> None:
        """Let as many messages in as there are threads, beside those of so many steps of hosted models."""
        if self.channel:
            self.channel.qos.prefetch_count = min(THREAD_COUNT + hosted, MOST_THREADS)

    def stop(self, consumer: Consumer) -> None:
        """Take no further messages; those that are held can still be acknowledged."""
        if self.messages:
            ignore_errors(consumer, self.messages.cancel)

    def shutdown(self, consumer: Consumer) -> None:
        """Put back what wasn't begun."""
        if self.messages:
            self.stop(consumer)
            ignore_errors(consumer, self.messages.close)
            self.messages = None


def hand_on_to_pools(consumer: Consumer) -> Callable[[Request], None]:
    """Return what has a request executed: in the threads of served models if it came from a queue of theirs."""
    served, execute = {queue.name for queue in _queues(consumer.app)}, consumer.on_task_request

    def hand_on(request: Request) -> None:
        if queue_of(request) in served:
            # Not by the request's own method, which Celery has replaced by one that always takes the main pool.
            with suppress(TaskRevokedError):
                Request.execute_using_pool(request, consumer.controller.served_pool)
        else:
            execute(request)

    return hand_on


def queue_of(request: Request) -> str:
    """Return the queue that a request came from."""
    return str(request.delivery_info["routing_key"])


def _queues(app: Celery) -> list[Queue]:
    """Return the queues of served models beside those that this process consumes as a generation worker."""
    queues = app.amqp.queues
    return [queues[served_queue(kind)] for kind in carried_out_by("generation") if kind in queues.consume_from]
