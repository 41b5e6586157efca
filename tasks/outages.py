"""What a worker process knows to be away, so that it asks for it by one step at a time and not by thousands."""

import random
import threading
import time
from collections.abc import Callable

from msgspec import Struct

from cotrail.core.actions.embed import Embed
from cotrail.core.actions.entail import Entail
from cotrail.core.actions.lookup import Lookup
from cotrail.core.actions.read import Read
from cotrail.core.actions.reason import Reason
from cotrail.core.actions.retrieve import Retrieve
from models.execution.claims import Claim
from tasks.policy import LONGEST_HOLD, TRIALS, seconds

TRIAL_SECONDS = 3.0
"""How long steps wait while another one tries whether what they need is back."""


class _Outage(Struct):
    """trials: how often it was asked for in vain; due: when it is to be asked for again; trying: whether it is now."""

    trials: int
    due: float
    trying: bool = False


class Outages:
    """The outages that steps have met, by what they need; safe for many threads.

    Once a trial is due, the first step that asks is the trial, and the others wait for what becomes of it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, _Outage] = {}
        self._lock = threading.Lock()

    def hold(self, need: str) -> float | None:
        """How many seconds a step that needs this is to wait; None where it is to be executed."""
        with self._lock:
            outage = self._known.get(need)
            if outage is None:
                return None
            if (left := outage.due - self._clock()) > 0:
                return left + random.random()  # noqa: S311 - so that they don't come back all at once
            if outage.trying:
                return TRIAL_SECONDS
            outage.trying = True
            return None

    def met(self, need: str, asked: float | None = None) -> float:
        """Notes that a step found it away; returns how long that step is to wait.

        asked: how many seconds it asks to be left alone. Many steps may find so at once: that is one trial.
        """
        with self._lock:
            outage = self._known.setdefault(need, _Outage(trials=0, due=self._clock(), trying=True))
            if outage.trying:
                outage.trying = False
                outage.trials += 1
                outage.due = self._clock() + max(seconds(TRIALS, outage.trials), min(asked or 0.0, LONGEST_HOLD))
            return max(outage.due - self._clock(), 0.0)

    def untried(self, need: str) -> None:
        """Notes that a step that asked for it was cut off before there was an answer: the next one is the trial."""
        with self._lock:
            if outage := self._known.get(need):
                outage.trying = False

    def over(self, need: str) -> bool:
        """Notes that it answered; returns whether it had been away."""
        if need not in self._known:
            return False
        with self._lock:
            return self._known.pop(need, None) is not None


def needed(claim: Claim) -> str:
    """What a step needs that may be away, in words."""
    run = claim.run
    match claim.action:
        case Reason() | Read():
            return f"the model {run.model_name}"
        case Retrieve():
            return f"the corpus {run.corpus}"
        case Lookup(source=source):
            return f"the knowledge source {source}"
        case Embed():
            return f"the embedder {run.embedder_name}"
        case Entail():
            return f"the entailer {run.entailer_name} beside the model {run.model_name}"
        case _:
            raise TypeError(f"{claim.action!r} is of no known kind")
