"""How a step comes to be claimed before a thread takes it up."""

from celery.bootsteps import Step
from celery.concurrency.thread import TaskPool
from celery.worker.consumer import Consumer
from celery.worker.request import Request

from tasks.routing import message_of
from tasks.runtime import runtime


class ClaimAhead(Step):  # type: ignore[misc, unused-ignore]
    """Has the step of each message claimed as it comes, and hands the message to a thread once that is done.

    Steps are claimed many at once. Threads that waited for that would all wake together and get in each other's way.
    """

    def include_if(self, consumer: Consumer) -> bool:
        """Only where threads of this process execute the tasks: a claim is its process's own."""
        return isinstance(consumer.pool, TaskPool)

    def create(self, consumer: Consumer) -> None:
        """Puts itself before what hands messages to threads."""
        execute, here = consumer.on_task_request, runtime()

        def receive(request: Request) -> None:
            message = message_of(request.name, request.args)
            if message is None or here.stopping.is_set():
                execute(request)
                return
            # What is claimed once the worker is to stop is given back as the runtime closes.
            here.claim_ahead(message).add_done_callback(lambda _: here.stopping.is_set() or execute(request))

        consumer.on_task_request = receive
