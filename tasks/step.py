"""The life of one step in a worker: claim, execute, commit, send what follows."""

import logging
import threading
import time
from collections.abc import Callable

from celery.exceptions import Reject

from cotrail.core.history import Outcome
from cotrail.core.ports.language_model import Interrupted
from cotrail.core.recordable import check_recordable
from cotrail.core.results import Result
from models.execution.claims import Claim, Completion
from models.records.dispatch import Dispatch
from tasks.held import Held
from tasks.outages import needed
from tasks.station import Station, station

logger = logging.getLogger(__name__)

Execute = Callable[[Station, Claim], Result]


def perform(message: Dispatch, execute: Execute) -> None:
    """Executes or adopts a step unless it isn't to be had, records how it ended, and sends what follows from it.

    Every execution of every step comes through here, the first as well as one after a crash. Celery is told of nothing
    but an `Exception`: it never gives a thread new work that anything else came out of.
    """
    try:
        _perform(message, execute)
    except BaseException as error:
        if isinstance(error, Exception) or _ends_process(error):
            raise
        raise RuntimeError(f"step {message.step_id} came to nothing: {error!r}") from error


def _perform(message: Dispatch, execute: Execute) -> None:
    here = station()
    if here.stopping.is_set():
        here.forgo([message])
        raise Reject("the worker is shutting down", requeue=True)
    with here.claimed(message) as held:
        if held is None:
            logger.debug("step %d in epoch %d isn't to be had", message.step_id, message.epoch)
            return
        completion = _completion(here, held, execute)
        if completion is None:
            return
        here.commit(completion)


def _completion(here: Station, held: Held, execute: Execute) -> Completion | None:
    """How the step ended, be it here or where its twin was computed; None where it was given back instead."""
    claim = held.claim
    if claim.adopted is not None:
        return Completion(claim=claim, outcome=claim.adopted.outcome, milliseconds=claim.adopted.milliseconds)
    wait = here.outages.hold(needed(claim))
    if wait is not None:
        here.insist(here.ledger.defer, claim, wait)
        return None
    started = time.perf_counter()
    outcome = _outcome(here, held, execute)
    if outcome is None:
        return None
    return Completion(claim=claim, outcome=outcome, milliseconds=(time.perf_counter() - started) * 1000)


def _outcome(here: Station, held: Held, execute: Execute) -> Outcome | None:
    """The step's result or failure; None where the step was given back instead, here or since it was overdue."""
    claim = held.claim
    held.begin()
    try:
        result = execute(here, claim)
        check_recordable(result)
    except Interrupted:
        here.outages.untried(needed(claim))
        if held.settle():
            here.insist(here.ledger.release, [claim])
        return None
    except BaseException as error:  # a panic of a library in Rust is no Exception, and must not cost a thread either
        if _ends_process(error):
            raise
        if not isinstance(error, Exception):
            here.reopen(claim)
        return here.failing.decide(claim, error) if held.settle() else None
    if not held.settle():
        logger.warning("step %d has a result after all, %.0f s after it began", claim.step_id, held.took())
        return None
    if here.outages.over(needed(claim)):
        logger.info("%s is back", needed(claim))
    return result


def _ends_process(error: BaseException) -> bool:
    """Whether this is how the process is told to end: only its main thread is."""
    return isinstance(error, SystemExit | KeyboardInterrupt) and threading.current_thread() is threading.main_thread()
