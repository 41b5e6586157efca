"""The life of one step in a worker: claim, execute, commit, send what follows."""

import logging
import time
from collections.abc import Callable

from celery.exceptions import Reject

from cotrail.actions import Result
from cotrail.errors import BlockedError, InputError, StepError
from cotrail.generation.generator import Interrupted
from cotrail.replay import Outcome
from models.advancing import Dispatch
from models.encoding import failure_of
from models.ledger import Claim, Completion
from tasks.station import Station, station

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""How long a step waits after its first transient failure; twice as long after each further one."""

Execute = Callable[[Station, Claim], Result]


def perform(message: Dispatch, execute: Execute) -> None:
    """Executes or adopts a step unless it isn't to be had, records how it ended, and sends what follows from it.

    Every execution of every step comes through here, the first as well as one after a crash.
    """
    here = station()
    if here.stopping.is_set():
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
    started = time.perf_counter()
    outcome = _outcome(here, claim, execute)
    if outcome is None:
        return None
    return Completion(claim=claim, outcome=outcome, milliseconds=(time.perf_counter() - started) * 1000)


def _outcome(here: Station, claim: Claim, execute: Execute) -> Outcome | None:
    """The step's result or failure; None where the step was given back instead."""
    try:
        return execute(here, claim)
    except Interrupted:
        here.insist(here.ledger.release, [claim])
    except (BlockedError, InputError) as error:
        logger.warning("step %d blocks its question: %s", claim.step_id, error)
        here.insist(here.ledger.block, claim, error)
    except StepError as error:
        return failure_of(error)
    except Exception as error:
        retries = here.insist(here.ledger.retries, claim)
        logger.warning("step %d failed, retry %d: %s", claim.step_id, retries, error, exc_info=True)
        if retries + 1 >= here.settings.max_attempts:
            return failure_of(error)
        here.insist(here.ledger.retry, claim, error, RETRY_SECONDS * 2**retries)
    return None
