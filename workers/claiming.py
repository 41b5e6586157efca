"""Claiming ahead: steps are claimed before a thread executes them."""

from celery.bootsteps import Step
from celery.concurrency.thread import TaskPool
from celery.worker.consumer import Consumer
from celery.worker.request import Request

from cotrail.core.actions.registry import carried_out_by
from cotrail.tasks.routing import message_of, served_queue
from cotrail.tasks.runtime import current_runtime
from cotrail.workers.served_models import hand_on_to_pools, queue_of


class ClaimAhead(Step):  # type: ignore[misc, unused-ignore]
    """Boot step of the consumer: claims the step of each message, and hands the message to a thread once that is done.

    Steps are claimed in micro-batches. Threads that waited for a batch would all wake at once and contend for Python's
    interpreter lock. Where models compute, a message has the step claimed whose turn it is (`cotrail.tasks.turns`).
    Steps of served models have threads of their own (`cotrail.workers.served_models`).
    """

    def include_if(self, consumer: Consumer) -> bool:
        """Include this step where threads of this process execute the tasks: a claim belongs to its process."""
        return isinstance(consumer.pool, TaskPool)

    def create(self, consumer: Consumer) -> None:
        """Intercept each message before it is handed to a thread."""
        execute, runtime = hand_on_to_pools(consumer), current_runtime()
        generating = carried_out_by("generation")

        def receive(request: Request) -> None:
            message = message_of(request.name, request.args)
            if message is None or runtime.stopping.is_set():
                execute(request)
                return
            in_turn = message.kind in generating and queue_of(request) != served_queue(message.kind)
            claim = runtime.claim_ahead(message, in_turn=in_turn)
            # What is claimed once the worker is to stop is given back as the runtime closes.
            claim.add_done_callback(lambda _: runtime.stopping.is_set() or execute(request))

        consumer.on_task_request = receive
