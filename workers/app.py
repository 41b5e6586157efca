"""The Celery app of a worker's process, which `cotrail worker ROLE` starts.

It adds to the configured app (`cotrail.workers.celery_app`) what only workers do: claiming ahead, loading models,
telling how they are.
"""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from logging import Logger
from typing import Any

import msgspec
from celery import Celery, signals
from celery.bootsteps import StartStopStep, Step
from celery.concurrency.thread import TaskPool
from celery.exceptions import TaskRevokedError
from celery.worker import WorkController
from celery.worker.components import Pool
from celery.worker.consumer import Consumer, Tasks
from celery.worker.control import inspect_command
from celery.worker.request import Request
from kombu import messaging
from kombu.common import ignore_errors
from kombu.entity import Queue
from sqlalchemy.exc import DBAPIError

from cotrail.common.log_formatting import print_safely
from cotrail.common.processes import collect_seldom
from cotrail.configuration.checks import refusing
from cotrail.configuration.settings import settings
from cotrail.core.actions.kind import Role
from cotrail.core.actions.registry import carried_out_by
from cotrail.errors import OutdatedError
from cotrail.models.schema.database import unanswered
from cotrail.models.schema.deployment import check_version
from cotrail.tasks.broker_health import CALL, Belonging, Present, set_variables
from cotrail.tasks.routing import message_of, served_queue
from cotrail.tasks.runtime import close_runtime, current_runtime, stop_runtime
from cotrail.workers.batching import Batching
from cotrail.workers.celery_app import app
from cotrail.workers.health import keep_telling, withdraw
from cotrail.workers.logs import keep_bounded

# Steps of served models in a generation worker: they have queues and threads of their own.
#
# So they never wait for a model that computes in the process, and each of the two takes only as many messages as it has
# threads for: what waits is left to other workers. Steps of hosted models, whose accounts bound them, don't count.

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
    """Boot step of the consumer: takes steps of served models, in addition to all those that wait for a hosted one.

    It has a channel of its own, and so a limit of its own to the messages that it holds.
    """

    requires = (Tasks,)
    messages: messaging.Consumer | None = None
    channel: Any = None
    looking: Any = None

    def include_if(self, consumer: Consumer) -> bool:
        """Include this step where there are threads for them."""
        return hasattr(consumer.controller, "served_pool")

    def start(self, consumer: Consumer) -> None:
        """Begin to take messages, and look how many steps of hosted models are under way."""
        self.channel = consumer.connection.channel()
        self.channel.basic_qos(0, THREAD_COUNT, False)
        handle = consumer.create_task_handler()
        self.messages = messaging.Consumer(self.channel, _queues(consumer.app), on_message=handle)
        self.messages.consume()
        self.looking = consumer.timer.call_repeatedly(ROOM_SECONDS, self._make_room)

    def stop(self, consumer: Consumer) -> None:
        """Take no further messages; those that are held can still be acknowledged."""
        if self.looking:
            self.looking.cancel()
        if self.messages:
            ignore_errors(consumer, self.messages.cancel)

    def shutdown(self, consumer: Consumer) -> None:
        """Put back what wasn't begun."""
        if self.messages:
            self.stop(consumer)
            ignore_errors(consumer, self.messages.close)
            self.messages = None

    def _make_room(self) -> None:
        """Let as many messages in as there are threads, in addition to those of hosted models."""
        if self.channel:
            self.channel.qos.prefetch_count = min(THREAD_COUNT + current_runtime().engines.hosted, MOST_THREADS)


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
    """Return the queues of served models in addition to those that this process consumes as a generation worker."""
    queues = app.amqp.queues
    return [queues[served_queue(kind)] for kind in carried_out_by("generation") if kind in queues.consume_from]


__all__ = ["app"]  # Celery looks for it here

logger = logging.getLogger(__name__)

SLOTS = {"retrieval": 2, "evidence": 16}
"""The number of threads of a worker; of a generation worker the settings have it."""

QUIET_OPTIONS = ("-l", "INFO", "--without-gossip", "--without-mingle")
"""Workers share nothing but the queues, so they needn't discover each other, which saves a second at each start."""


class ClaimAhead(Step):  # type: ignore[misc, unused-ignore]
    """Boot step of the consumer: claims the step of each message, and hands the message to a thread once that is done.

    Steps are claimed in micro-batches. Threads that waited for a batch would all wake at once and contend for Python's
    interpreter lock. Where models compute, a message has the step claimed whose turn it is (`cotrail.tasks.routing`).
    Steps of served models have threads of their own (`cotrail.workers.app`).
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


app.steps["worker"].add(ServedPool)
app.steps["consumer"].update({ServedConsumer, ClaimAhead})


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
    runtime = current_runtime()
    with refusing(), suppress(DBAPIError), runtime.ledger.engine.connect() as connection:
        check_version(connection)  # a database that doesn't answer is waited for later
    if not app.amqp.queues.consume_from.keys().isdisjoint(carried_out_by("generation")):
        with refusing():
            runtime.engines.load(settings().model, "fast")
        _look_after_batches()
    threading.Thread(target=_leave_when_outdated, name="belonging", daemon=True).start()
    collect_seldom()
    keep_telling(sender.hostname, runtime.problem)


def _leave_when_outdated() -> None:
    """Compare this process with the database again and again, and end it in order once it doesn't belong to it."""
    runtime = current_runtime()
    own = runtime.settings
    belonging = Belonging(runtime.ledger.engine, own.broker, own.broker_prefix)
    while not runtime.stopping.wait(own.heartbeat_seconds):
        try:
            belonging.check()
        except OutdatedError as error:
            logger.error("this process ends: %s", error)
            # As `cotrail down` would: Celery ends in order, and steps are given back.
            os.kill(os.getpid(), signal.SIGTERM)
            return
        except Exception as error:
            if not unanswered(error):
                logger.exception("this process couldn't be compared with the database")


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
    events: whether Flower receives each task.

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
