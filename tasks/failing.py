"""What becomes of a step whose execution failed."""

import logging
from collections.abc import Callable
from typing import Any

from cotrail.core.encoding import failure_of
from cotrail.core.results import Failure
from models.execution.claims import Claim
from models.execution.ledger import Ledger
from tasks.outages import Outages, needed
from tasks.policy import Block, Fail, Hold, Retry, verdict

logger = logging.getLogger(__name__)


class Failing:
    """Gives failed steps back as `tasks.policy` says.

    insist: does work on the store, again for as long as that doesn't answer.
    """

    def __init__(self, ledger: Ledger, outages: Outages, insist: Callable[..., Any], max_attempts: int) -> None:
        self._ledger = ledger
        self._outages = outages
        self._insist = insist
        self._max_attempts = max_attempts

    def decide(self, claim: Claim, error: BaseException) -> Failure | None:
        """The failure that the step ends with; None where it was given back instead."""
        retries = self._insist(self._ledger.retries, claim)
        decided = verdict(error, retries, self._max_attempts)
        if isinstance(decided, Hold):
            self._hold(claim, error, decided.seconds)
            return None
        self._outages.over(needed(claim))
        match decided:
            case Fail():
                logger.warning("step %d failed: %s", claim.step_id, error)
                return failure_of(error)
            case Retry(seconds):
                logger.warning("step %d failed, retry %d: %s", claim.step_id, retries + 1, error, exc_info=error)
                self._insist(self._ledger.retry, claim, error, seconds)
            case Block():
                logger.warning("step %d blocks its question: %s", claim.step_id, error)
                self._insist(self._ledger.block, claim, error)
        return None

    def _hold(self, claim: Claim, error: BaseException, asked: float | None) -> None:
        wait = self._outages.met(needed(claim), asked)
        logger.warning("step %d waits %.0f s for %s: %s", claim.step_id, wait, needed(claim), error)
        self._insist(self._ledger.hold, claim, error, wait)
