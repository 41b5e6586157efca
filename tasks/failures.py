"""Failed executions: each step is failed, tried again, held back or blocked, as the retry policy says."""

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from tenacity import RetryCallState, Retrying, wait_random_exponential
from tenacity.wait import wait_base

from cotrail.core.actions.registry import kind_of
from cotrail.core.results import Failure, failure_of
from cotrail.errors import BlockedError, BusyError, InputError, StepError, UnavailableError
from cotrail.models.execution.leases import Claim, Leases
from cotrail.models.schema.states import AttemptOutcome

# Retry policy of failed steps, with exponential backoff between attempts.
#
# | what was raised | what it is | what happens |
# | --- | --- | --- |
# | BlockedError, InputError | something that a person has to fix | the question is blocked |
# | BusyError | a limit of the account with a provider | held back, at no cost; other steps go on |
# | UnavailableError | an outage of what the step needs | held back, at no cost |
# | StepError | it can't succeed, however often it is tried | it fails at once |
# | anything else | it may succeed another time | tried again, up to a limit; then it fails |
#
# Some errors are two of these: the upper line counts, as for a library that isn't installed.

RETRIES = wait_random_exponential(multiplier=2, min=1, max=60)
"""Exponential backoff with jitter until a step is tried again: steps that failed together don't return together."""

TRIALS = wait_random_exponential(multiplier=2, min=1, max=30)
"""Exponential backoff with jitter until an engine that is away is tried again."""

LONGEST_HOLD = 300.0
"""Most seconds until an engine is tried again, however long it asks to be left alone."""


class Fail(Struct, frozen=True):
    """The failure becomes the step's, for its system to see."""


class Retry(Struct, frozen=True):
    """The step is tried again after this many seconds."""

    seconds: float


class Hold(Struct, frozen=True):
    """The step waits until the engine that it needs is back; seconds: how long that asks to be left alone."""

    seconds: float | None


class Wait(Struct, frozen=True):
    """The step waits until its account with a provider may go on, in this many seconds."""

    seconds: float


class Block(Struct, frozen=True):
    """The question waits for a person."""


Verdict = Fail | Retry | Hold | Wait | Block


def verdict(error: BaseException, retries: int, max_attempts: int) -> Verdict:
    """The verdict on a failed step; retries: how often it was tried again already."""
    match error:
        case BlockedError() | InputError():
            return Block()
        case BusyError():
            return Wait(min(seconds(TRIALS, 1) if error.seconds is None else error.seconds, LONGEST_HOLD))
        case UnavailableError():
            return Hold(error.seconds)
        case StepError():
            return Fail()
    return Fail() if retries + 1 >= max_attempts else Retry(seconds(RETRIES, retries + 1))


def seconds(wait: wait_base, number: int) -> float:
    """Seconds to wait after the failure of that number, from 1."""
    # tenacity computes waits from the state of a call of its own; here the store counts the attempts instead.
    state = RetryCallState(Retrying(), None, (), {})
    state.attempt_number = number
    return wait(state)


# Circuit breaker: an engine that a worker found away is asked for by one step at a time, and not by thousands.

TRIAL_SECONDS = 3.0
"""How long steps wait while another one tries whether the engine that they need is back."""


class _Outage(Struct):
    """An open circuit.

    trials: how many steps have found the engine away; due: when the next one may try; trying: whether one does now
    (the circuit is half-open).
    """

    trials: int
    due: float
    trying: bool = False


class CircuitBreaker:
    """The circuits that are open, by the engine's name in words; safe for many threads.

    Once a trial is due, the first step that asks is the trial (half-open), and the others wait for how it ends.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[str, _Outage] = {}
        self._lock = threading.Lock()

    def wait(self, need: str) -> float | None:
        """How many seconds a step that needs this has to wait; None where it may be executed."""
        with self._lock:
            outage = self._open.get(need)
            if outage is None:
                return None
            if (left := outage.due - self._clock()) > 0:
                return left + random.random()  # noqa: S311 - jitter, so that they don't come back all at once
            if outage.trying:
                return TRIAL_SECONDS
            outage.trying = True
            return None

    def failed(self, need: str, seconds_asked: float | None = None) -> float:
        """Opens the circuit, as a step found the engine away; returns how long that step has to wait.

        seconds_asked: how many seconds the engine asks to be left alone (Retry-After).
        """
        with self._lock:
            # A new circuit begins as if under trial, so that this failure is its first and sets its first pause.
            outage = self._open.setdefault(need, _Outage(trials=0, due=self._clock(), trying=True))
            # Steps that were under way together all fail: that is one trial, or the wait would double with each.
            if outage.trying:
                outage.trying = False
                outage.trials += 1
                outage.due = self._clock() + max(
                    seconds(TRIALS, outage.trials), min(seconds_asked or 0.0, LONGEST_HOLD)
                )
            return max(outage.due - self._clock(), 0.0)

    def cut_off(self, need: str) -> None:
        """Notes that a step was cut off before the engine answered: the next step is the trial."""
        with self._lock:
            if outage := self._open.get(need):
                outage.trying = False

    def succeeded(self, need: str) -> bool:
        """Closes the circuit, as the engine answered; returns whether it was open."""
        # First without the lock, as every step of every thread comes by here: looking a key up is atomic under the
        # GIL, and a circuit that is opened just now is closed by the next success.
        if need not in self._open:
            return False
        with self._lock:
            return self._open.pop(need, None) is not None


def needed(claim: Claim) -> str:
    """The engine that a step needs and that may be away, in words."""
    return kind_of(claim.action).needed(claim.action, claim.run)


logger = logging.getLogger(__name__)


class FailureHandler:
    """Gives failed steps back as `cotrail.tasks.failures` says.

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
