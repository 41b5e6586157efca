"""The Celery app of a worker's process, which `cotrail worker ROLE` starts.

It adds to the configured app (`cotrail.workers.celery_app`) what only workers do: claiming ahead, loading models,
telling how they are.
"""

import os
import socket
import sys
import threading
from collections.abc import Sequence
from logging import Logger
from typing import Any

import msgspec
from celery import signals
from celery.bootsteps import Step
from celery.concurrency.thread import TaskPool
from celery.worker.consumer import Consumer
from celery.worker.control import inspect_command
from celery.worker.request import Request

from cotrail.common.garbage import collect_seldom
from cotrail.common.log_formatting import print_safely
from cotrail.configuration.refusals import refusing
from cotrail.configuration.settings import settings
from cotrail.core.actions.kind import Role
from cotrail.core.actions.registry import carried_out_by
from cotrail.tasks.roll_call import CALL, Present, set_variables
from cotrail.tasks.routing import message_of, served_queue
from cotrail.tasks.runtime import close_runtime, current_runtime, stop_runtime
from cotrail.workers.batching import Batching
from cotrail.workers.celery_app import app
from cotrail.workers.health import keep_telling
from cotrail.workers.logs import keep_bounded
from cotrail.workers.ready import withdraw
from cotrail.workers.served_models import ROOM_SECONDS, ServedConsumer, ServedPool, hand_on_to_pools, queue_of

__all__ = ["app"]  # Celery looks for it here

SLOTS = {"retrieval": 2, "evidence": 16}
"""The number of threads of a worker; of a generation worker the settings have it."""

QUIET_OPTIONS = ("-l", "INFO", "--without-gossip", "--without-mingle")
"""Workers share nothing but the queues, so they needn't discover each other, which saves a second at each start."""


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


class TakeServed(ServedConsumer):
    """Boot step of the consumer: takes steps of served models, beside all those that wait for a hosted one."""

    looking: Any = None

    def start(self, consumer: Consumer) -> None:
        """Begin to take messages, and look how many steps of hosted models are under way."""
        super().start(consumer)
        self.looking = consumer.timer.call_repeatedly(
            ROOM_SECONDS, lambda: self.make_room(current_runtime().engines.hosted)
        )

    def stop(self, consumer: Consumer) -> None:
        """Take no further messages."""
        if self.looking:
            self.looking.cancel()
        super().stop(consumer)


app.steps["worker"].add(ServedPool)
app.steps["consumer"].update({TakeServed, ClaimAhead})


@inspect_command(name=CALL)
def _answer(state: Any, variables: Sequence[object] = (), **_: object) -> dict[str, Any]:
    """Answer a roll call; variables: the names of those that the caller asks about."""
    present = Present(
        worker=current_runtime().ledger.worker,
        name=state.hostname.partition("@")[0],
        host=socket.gethostname(),
        pid=os.getpid(),
        kinds=tuple(sorted(state.app.amqp.queues.consume_from)),
        slots=state.consumer.pool.limit,
        problem=current_runtime().problem(),
        variables=set_variables(variables),
    )
    answer: dict[str, Any] = msgspec.to_builtins(present)
    return answer


@signals.after_setup_task_logger.connect
@signals.after_setup_logger.connect
def _print_safely(logger: Logger, **_: Any) -> None:
    """Escape control characters: logs quote servers, models and questions."""
    print_safely(*logger.handlers)


@signals.worker_init.connect
def _begin(**_: Any) -> None:
    """Bound the log before anything is loaded that may write much, and drop what a former process reported."""
    withdraw()
    keep_bounded()


@signals.worker_ready.connect
def _load_and_announce(sender: Any, **_: Any) -> None:
    """Load the model of a generation worker, which counts as ready only then, and begin to tell how the process is."""
    if not app.amqp.queues.consume_from.keys().isdisjoint(carried_out_by("generation")):
        with refusing():
            current_runtime().engines.load(settings().model, "fast")
        _look_after_batches()
    collect_seldom()
    keep_telling(sender.hostname, current_runtime().problem)


def _look_after_batches() -> None:
    """Send and collect batches in a thread, whenever it is this process's turn."""
    runtime = current_runtime()
    batching = Batching(runtime.settings, runtime.ledger.engine, runtime.ledger.worker, runtime.stopping)
    threading.Thread(target=batching.run, name="batching", daemon=True).start()


@signals.worker_shutting_down.connect
def _stop(**_: Any) -> None:
    """Have running generations cut off and given back, so that a shutdown needn't wait for them."""
    stop_runtime()


@signals.worker_shutdown.connect
def _close(**_: Any) -> None:
    """Free the engines while the interpreter is still whole; no task runs any more."""
    close_runtime()


def serve(role: Role, *, slots: int | None = None, name: str | None = None, events: bool = False) -> None:
    """Work on the steps of a role's kinds until SIGTERM or SIGINT.

    slots: how many steps at a time; None: as many as suits the role.
    name: the worker's name before `@` and the host; None: the role. Workers of one host need different ones.
    events: whether Flower is told of each task.

    Unlike Celery's own command, nothing is imported from the working directory, where a `tasks.py` may lie.
    """
    from celery.bin.celery import celery  # slow, and only for this

    # What `app.worker_main` does, which loses the exit code.
    celery.params[0].default = app
    sys.exit(celery.main(["worker", *options(role, slots=slots, name=name, events=events)], standalone_mode=False))


def options(role: Role, *, slots: int | None = None, name: str | None = None, events: bool = False) -> list[str]:
    """The options of Celery's worker."""
    count = slots or SLOTS.get(role) or settings().generation_slots
    queues = ",".join(carried_out_by(role))
    own = ["-Q", queues, "-P", "threads", "-c", str(count), "-n", f"{name or role}@%h"]
    return [*own, *QUIET_OPTIONS, *["-E"] * events]
