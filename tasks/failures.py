"""Failed executions: each step is failed, tried again, held back or blocked, as the retry policy says."""

import logging
from collections.abc import Callable
from typing import Any

from cotrail.core.results import Failure, failure_of
from cotrail.models.execution.claims import Claim
from cotrail.models.execution.leases import Leases
from cotrail.models.schema.states import AttemptOutcome
from cotrail.tasks.circuit_breaker import CircuitBreaker, needed
from cotrail.tasks.retry_policy import Block, Fail, Hold, Retry, Wait, verdict

logger = logging.getLogger(__name__)


class FailureHandler:
    """Gives failed steps back as `cotrail.tasks.retry_policy` says.

    insist: does work on the store, again for as long as the database doesn't answer.
    """

    def __init__(self, leases: Leases, breaker: CircuitBreaker, insist: Callable[..., Any], max_attempts: int) -> None:
        self._leases = leases
        self._breaker = breaker
        self._insist = insist
        self._max_attempts = max_attempts

    def decide(self, claim: Claim, error: BaseException) -> Failure | AttemptOutcome:
        """The failure that the step ends with; where it was given back instead, how this execution ended."""
        retries = self._insist(self._leases.retries, claim)
        decided = verdict(error, retries, self._max_attempts)
        if isinstance(decided, Hold):
            self._hold(claim, error, decided.seconds)
            return AttemptOutcome.UNAVAILABLE
        # Whatever else was raised, the engine answered.
        self._breaker.succeeded(needed(claim))
        match decided:
            case Fail():
                logger.warning("step %d failed: %s", claim.step_id, error)
                return failure_of(error)
            case Retry(seconds):
                logger.warning("step %d failed, retry %d: %s", claim.step_id, retries + 1, error, exc_info=error)
                self._insist(self._leases.retry, claim, error, seconds)
                return AttemptOutcome.RETRIED
            case Wait(seconds):
                logger.info("step %d waits %.0f s: %s", claim.step_id, seconds, error)
                self._insist(self._leases.hold, claim, error, seconds)
                return AttemptOutcome.UNAVAILABLE
            case Block():
                logger.warning("step %d blocks its question: %s", claim.step_id, error)
                self._insist(self._leases.block, claim, error)
                return AttemptOutcome.BLOCKED

    def _hold(self, claim: Claim, error: BaseException, seconds: float | None) -> None:
        wait = self._breaker.failed(needed(claim), seconds)
        logger.warning("step %d waits %.0f s for %s: %s", claim.step_id, wait, needed(claim), error)
        self._insist(self._leases.hold, claim, error, wait)
