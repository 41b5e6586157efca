"""A step that a process has claimed, and who says how its execution ended."""

import threading
import time

from cotrail.core.ports.cancellation import Cancellation
from models.execution.claims import Claim


class Held:
    """A claim; threads share it.

    cancellation: what cuts its generation off.
    renewed: when its lease was asked for that is known to be good; began: when its execution began, None before. Both
        are times of the monotonic clock.
    """

    def __init__(self, claim: Claim, renewed: float) -> None:
        self.claim = claim
        self.cancellation = Cancellation()
        self.renewed = renewed
        self.began: float | None = None
        self._ending = threading.Lock()

    def begin(self) -> None:
        """Notes that its execution begins."""
        self.began = time.monotonic()

    def settle(self) -> bool:
        """Whether nobody has said yet how the execution ended: whoever asks first is to say it."""
        return self._ending.acquire(blocking=False)

    def took(self) -> float:
        """For how many seconds it has been executed."""
        return 0.0 if self.began is None else time.monotonic() - self.began
