"""Limits of how often may be asked with one token, in each process of the service."""

import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from cotrail.configuration.settings import settings
from cotrail.errors import TooManyRequestsError


class Rates:
    """Counts the requests of each token."""

    def __init__(self) -> None:
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def count(self, token: str) -> None:
        """Count a request with a token; raises TooManyRequestsError where it is one too many."""
        most = RateLimitItemPerMinute(settings().requests_per_minute)
        if not self._limiter.hit(most, token):
            seconds = max(1.0, self._limiter.get_window_stats(most, token).reset_time - time.time())
            raise TooManyRequestsError(
                f"more than {most.amount:,} requests in a minute came with this token; try again in {seconds:.0f} s",
                seconds,
            )
