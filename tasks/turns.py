"""Turns of the models that compute in this process: a step each, whichever of them has most steps waiting."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from cotrail.core.ports.cancellation import Cancellation
from cotrail.models.execution.claims import Claim
from cotrail.models.records.steps import Dispatch

# The lease of a step that this process has claimed.


class Lease:
    """A claim and the time for which it is known to be good; threads share it.

    cancellation: cuts off the step's generation.
    renewed: when the latest renewal that succeeded was asked for; began: when the execution began, None before. Both
        are times of the monotonic clock.
    """

    # The plain attributes need no lock: each is written by one thread at a time (`renewed` by the heartbeat, `began`
    # by the executing thread), and assigning a reference is atomic under the GIL.

    def __init__(self, claim: Claim, renewed: float) -> None:
        self.claim = claim
        self.cancellation = Cancellation()
        self.renewed = renewed
        self.began: float | None = None
        self._ending = threading.Lock()

    def begin(self) -> None:
        """Notes that the execution begins."""
        self.began = time.monotonic()

    def settle(self) -> bool:
        """Return whether the caller is the first to end the execution; only the first may record how it ended."""
        # A lock that is never released is a flag that only one thread can set: either the executing thread or the
        # heartbeat, which gives up executions that are overdue.
        return self._ending.acquire(blocking=False)

    def took(self) -> float:
        """Seconds since the execution began; 0 before."""
        return 0.0 if self.began is None else time.monotonic() - self.began


NextInTurn = Callable[[str, Sequence[int], Sequence[str], int], list[Dispatch]]
"""Returns the steps that are next: see `cotrail.models.execution.turns.next_in_turn`."""


class Turns:
    """Claims steps for messages that only say that a step waits. For one thread.

    next_in_turn: which steps are next; claim: claims them, each unless another worker was faster.
    """

    def __init__(self, next_in_turn: NextInTurn, claim: Callable[[Sequence[Dispatch]], list[Lease | None]]) -> None:
        self._next_in_turn = next_in_turn
        self._claim = claim
        self._latest: dict[str, None] = {}

    def claim(self, messages: Sequence[Dispatch]) -> list[Lease | None]:
        """Claims a step for each message; None where none waits any more."""
        leases: dict[Dispatch, Lease] = {}
        for kind, group in groupby(sorted(messages, key=_kind), _kind):
            of_kind = list(group)
            leases |= dict(zip(of_kind, self._claimed(kind, of_kind), strict=False))
        return [leases.pop(message, None) for message in messages]

    def _claimed(self, kind: str, messages: Sequence[Dispatch]) -> Iterable[Lease]:
        """As many of the next steps as there are messages."""
        own, left = [message.step_id for message in messages], len(messages)
        while left and (chosen := self._next_in_turn(kind, own, list(self._latest), left)):
            for lease in self._claim(chosen):
                if lease is not None:
                    left -= 1
                    self._had_turn(lease)
                    yield lease

    def _had_turn(self, lease: Lease) -> None:
        if lease.claim.adopted is None:
            model = lease.claim.run.model_name
            self._latest.pop(model, None)
            self._latest[model] = None


def _kind(message: Dispatch) -> str:
    return message.kind
