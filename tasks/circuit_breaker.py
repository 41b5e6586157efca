"""Circuit breaker: an engine that a worker found away is asked for by one step at a time, and not by thousands."""

import random
import threading
import time
from collections.abc import Callable

from msgspec import Struct

from cotrail.core.actions.registry import kind_of
from cotrail.models.execution.claims import Claim
from cotrail.tasks.retry_policy import LONGEST_HOLD, TRIALS, seconds

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
