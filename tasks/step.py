"""The life of one step in a worker: claim, execute, commit, send what follows."""

import logging
import time
from collections.abc import Callable

from celery.exceptions import Reject

from cotrail.actions import Failure, Result
from cotrail.encoding import failure_of
from cotrail.generation.generator import Interrupted
from cotrail.replay import Outcome
from models.advancing import Dispatch
from models.ledger import Claim, Completion
from tasks.outages import needed
from tasks.policy import Block, Fail, Hold, Retry, verdict
from tasks.station import Station, station

logger = logging.getLogger(__name__)

Execute = Callable[[Station, Claim], Result]


def perform(message: Dispatch, execute: Execute) -> None:
    """Executes or adopts a step unless it isn't to be had, records how it ended, and sends what follows from it.

    Every execution of every step comes through here, the first as well as one after a crash.
    """
    here = station()
    if here.stopping.is_set():
        here.forgo([message])
        raise Reject("the worker is shutting down", requeue=True)
    with here.claimed(message) as claim:
        if claim is None:
            logger.debug("step %d in epoch %d isn't to be had", message.step_id, message.epoch)
            return
        completion = _completion(here, claim, execute)
        if completion is None:
            return
        here.commit(completion)


def _completion(here: Station, claim: Claim, execute: Execute) -> Completion | None:
    """How the step ended, be it here or where its twin was computed; None where it was given back instead."""
    if claim.adopted is not None:
        return Completion(claim=claim, outcome=claim.adopted.outcome, milliseconds=claim.adopted.milliseconds)
    wait = here.outages.hold(needed(claim))
    if wait is not None:
        here.insist(here.ledger.defer, claim, wait)
        return None
    started = time.perf_counter()
    outcome = _outcome(here, claim, execute)
    if outcome is None:
        return None
    return Completion(claim=claim, outcome=outcome, milliseconds=(time.perf_counter() - started) * 1000)


def _outcome(here: Station, claim: Claim, execute: Execute) -> Outcome | None:
    """The step's result or failure; None where the step was given back instead."""
    try:
        result = execute(here, claim)
    except Interrupted:
        here.insist(here.ledger.release, [claim])
        return None
    except Exception as error:  # noqa: BLE001 - what it means is decided there
        return _failed(here, claim, error)
    if here.outages.over(needed(claim)):
        logger.info("%s is back", needed(claim))
    return result


def _failed(here: Station, claim: Claim, error: Exception) -> Failure | None:
    """The failure that the step ends with; None where the step was given back instead."""
    retries = here.insist(here.ledger.retries, claim)
    decided = verdict(error, retries, here.settings.max_attempts)
    if isinstance(decided, Hold):
        wait = here.outages.met(needed(claim), decided.seconds)
        logger.warning("step %d waits %.0f s for %s: %s", claim.step_id, wait, needed(claim), error)
        here.insist(here.ledger.hold, claim, error, wait)
        return None
    here.outages.over(needed(claim))
    match decided:
        case Fail():
            logger.warning("step %d failed: %s", claim.step_id, error)
            return failure_of(error)
        case Retry(seconds):
            logger.warning("step %d failed, retry %d: %s", claim.step_id, retries + 1, error, exc_info=True)
            here.insist(here.ledger.retry, claim, error, seconds)
        case Block():
            logger.warning("step %d blocks its question: %s", claim.step_id, error)
            here.insist(here.ledger.block, claim, error)
    return None
