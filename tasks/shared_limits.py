"""Limits of providers, shared by all processes on all machines through Redis."""

import logging
import time
from typing import Literal

from redis import Redis, RedisError

from cotrail.core.ports.rate_limiter import Limits, Need
from cotrail.engines.rate_limits.pools import ProcessLimiter
from cotrail.tasks.pacing_script import SCRIPT

logger = logging.getLogger(__name__)

PREFIX = "cotrail-limits:"
"""Beginning of the keys in Redis."""

PATIENCE_SECONDS = 1.0
"""How long Redis may take to answer."""

AWAY_SECONDS = 10.0
"""How long Redis isn't asked again after it didn't answer."""

_NO_LIMITS, _NO_NEED = Limits(), Need(requests=0)

Operation = Literal["reserve", "settle", "refused", "pause"]


class SharedLimiter:
    """See `RateLimiter`. Without Redis each process keeps limits of its own, as everything here is soft.

    url: of Redis.
    """

    def __init__(self, url: str) -> None:
        # Celery has a name of its own for Unix sockets.
        url = url.replace("redis+socket://", "unix://", 1)
        redis = Redis.from_url(url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS)
        self._script = redis.register_script(SCRIPT)
        self._own = ProcessLimiter()
        self._away_until = 0.0

    def reserve(self, pool: str, need: Need, limits: Limits, longest: float) -> float:
        """See `RateLimiter`."""
        wait = self._ask("reserve", pool, limits, need, longest)
        return self._own.reserve(pool, need, limits, longest) if wait is None else wait

    def settle(self, pool: str, more: Need, limits: Limits) -> None:
        """See `RateLimiter`."""
        if self._ask("settle", pool, limits, more) is None:
            self._own.settle(pool, more, limits)

    def refused(self, pool: str, seconds: float | None) -> None:
        """See `RateLimiter`."""
        self._ask("refused", pool, last=-1.0 if seconds is None else seconds)
        self._own.refused(pool, seconds)

    def pause(self, pool: str) -> float:
        """See `RateLimiter`."""
        wait = self._ask("pause", pool)
        return self._own.pause(pool) if wait is None else wait

    def _ask(
        self,
        what: Operation,
        pool: str,
        limits: Limits = _NO_LIMITS,
        need: Need = _NO_NEED,
        last: float = 0.0,
    ) -> float | None:
        """The script's answer; None where Redis doesn't answer."""
        if time.monotonic() < self._away_until:
            return None
        try:
            return float(self._script([f"{PREFIX}{pool}"], [what, *limits.values, *need.values, last]))
        except RedisError as error:
            self._away_until = time.monotonic() + AWAY_SECONDS
            logger.warning("Redis doesn't answer, so that this process keeps to limits of its own: %s", error)
            return None
