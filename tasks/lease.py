"""The lease of a step that this process has claimed."""

import threading
import time

from cotrail.core.ports.cancellation import Cancellation
from cotrail.models.execution.claims import Claim


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
