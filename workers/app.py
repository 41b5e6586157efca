"""The Celery app of a worker's process, which `cotrail worker ROLE` starts (`cotrail.workers.serving`).

It adds to the configured app (`cotrail.workers.celery_app`) what only workers do: claiming ahead, loading models,
telling how they are.
"""

import gc
import os
import socket
from logging import Logger
from typing import Any

import msgspec
from celery import signals
from celery.worker.control import inspect_command

from cotrail.common.log_formatting import print_safely
from cotrail.configuration.refusals import refusing
from cotrail.configuration.settings import settings
from cotrail.core.actions.registry import carried_out_by
from cotrail.tasks.roll_call import CALL, Present
from cotrail.tasks.runtime import close_runtime, current_runtime, stop_runtime
from cotrail.workers.celery_app import app
from cotrail.workers.claiming import ClaimAhead
from cotrail.workers.health import keep_telling
from cotrail.workers.logs import keep_bounded
from cotrail.workers.ready import withdraw
from cotrail.workers.served_models import ServedConsumer, ServedPool

__all__ = ["app"]  # Celery looks for it here

COLLECTION_THRESHOLD = 100_000
"""The number of new objects after which Python looks for reference cycles; messages and rows leave hardly any."""

app.steps["worker"].add(ServedPool)
app.steps["consumer"].update({ServedConsumer, ClaimAhead})


@inspect_command(name=CALL)
def _answer(state: Any, **_: object) -> dict[str, Any]:
    """Answer a roll call."""
    present = Present(
        worker=current_runtime().ledger.worker,
        name=state.hostname.partition("@")[0],
        host=socket.gethostname(),
        pid=os.getpid(),
        kinds=tuple(sorted(state.app.amqp.queues.consume_from)),
        slots=state.consumer.pool.limit,
        problem=current_runtime().problem(),
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
    # What is loaded by now stays: frozen, it is left out of every later collection.
    gc.freeze()
    gc.set_threshold(COLLECTION_THRESHOLD, *gc.get_threshold()[1:])
    keep_telling(sender.hostname, current_runtime().problem)


@signals.worker_shutting_down.connect
def _stop(**_: Any) -> None:
    """Have running generations cut off and given back, so that a shutdown needn't wait for them."""
    stop_runtime()


@signals.worker_shutdown.connect
def _close(**_: Any) -> None:
    """Free the engines while the interpreter is still whole; no task runs any more."""
    close_runtime()
