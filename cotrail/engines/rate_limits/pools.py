"""Pools of what accounts may use, in this process.

Each dimension of a pool is a schedule: the time at which all that was reserved will have been allowed, at the limit's
rate. A request is sent at that time (the generic cell rate algorithm, ITU-T I.371, without bursts). Providers hold
limits of a minute over shorter times too, so that evenly spaced requests are the most that is never refused.
"""

import time
from collections.abc import Callable
from math import exp
from threading import Lock

from msgspec import Struct

from cotrail.core.ports.rate_limiter import DIMENSIONS, Limits, Need

MINUTE = 60.0

USED = 0.98
"""The share of a limit that is used: clocks and networks move requests a little."""

FIRST_PAUSE = 1.0
"""Seconds of the pause after a refusal that doesn't tell one; each further one in a row doubles it."""

LONGEST_PAUSE = 60.0
"""The most seconds of such a pause."""

DECREASE, INCREASE = 0.8, 1.05
"""What a rate that isn't told is multiplied with: at a refusal, and after each `CLEAN_SECONDS` without one (AIMD)."""

CLEAN_SECONDS = 5.0

SMOOTHING_SECONDS = 10.0
"""Over how many seconds the rate of requests is averaged."""


class Pool(Struct):
    """What is known of an account's share of a model; all times are of one clock, in seconds.

    free: when all that was reserved will have been allowed, in the order of `DIMENSIONS`.
    paused: until when it is to be left alone; refusals: how many came in a row.
    rate: the most requests a second that refusals leave, 0 where there were none; changed: when that was last changed.
    seen: the average of requests a second; asked: when the last one was.
    """

    free: list[float]
    paused: float = 0.0
    refusals: int = 0
    rate: float = 0.0
    changed: float = 0.0
    seen: float = 0.0
    asked: float = 0.0


def reserve(pool: Pool, now: float, need: Need, limits: Limits, longest: float) -> float:
    """See `RateLimiter`; now: the time."""
    rates = _rates(pool, now, limits)
    start = max([now, pool.paused, *(free for free, rate in zip(pool.free, rates, strict=True) if rate)])
    if start - now > longest:
        return start - now
    for place, (amount, rate) in enumerate(zip(need.values, rates, strict=True)):
        if rate:
            pool.free[place] = max(pool.free[place], start) + amount / rate
    pool.seen = pool.seen * exp((pool.asked - start) / SMOOTHING_SECONDS) + 1 / SMOOTHING_SECONDS
    pool.asked = start
    return start - now


def settle(pool: Pool, more: Need, limits: Limits) -> None:
    """See `RateLimiter`."""
    for place, (amount, limit) in enumerate(zip(more.values, limits.values, strict=True)):
        if limit:
            pool.free[place] += amount * MINUTE / (limit * USED)


def refused(pool: Pool, now: float, seconds: float | None) -> None:
    """See `RateLimiter`; a refusal within a pause is of a request that was under way, and says nothing new."""
    if now >= pool.paused:
        pool.refusals += 1
        pool.rate = DECREASE * (pool.rate or pool.seen)
        pool.changed = now
    doubled = min(FIRST_PAUSE * 2 ** min(pool.refusals - 1, 10), LONGEST_PAUSE)
    pool.paused = max(pool.paused, now + (doubled if seconds is None else seconds))


def _rates(pool: Pool, now: float, limits: Limits) -> list[float]:
    """The rates a second; that of requests also by refusals, where the provider doesn't tell it."""
    rates = [limit * USED / MINUTE for limit in limits.values]
    if pool.rate and now - pool.changed > CLEAN_SECONDS:
        pool.rate, pool.changed, pool.refusals = pool.rate * INCREASE, now, 0
    if not limits.requests:
        rates[0] = pool.rate
    return rates


class ProcessLimiter:
    """See `RateLimiter`: the pools of one process; safe for many threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._pools: dict[str, Pool] = {}

    def reserve(self, pool: str, need: Need, limits: Limits, longest: float) -> float:
        """See `RateLimiter`."""
        with self._lock:
            return reserve(self._pool(pool), self._clock(), need, limits, longest)

    def settle(self, pool: str, more: Need, limits: Limits) -> None:
        """See `RateLimiter`."""
        with self._lock:
            settle(self._pool(pool), more, limits)

    def refused(self, pool: str, seconds: float | None) -> None:
        """See `RateLimiter`."""
        with self._lock:
            refused(self._pool(pool), self._clock(), seconds)

    def pause(self, pool: str) -> float:
        """See `RateLimiter`."""
        with self._lock:
            return max(0.0, self._pool(pool).paused - self._clock())

    def _pool(self, name: str) -> Pool:
        return self._pools.setdefault(name, Pool(free=[0.0] * len(DIMENSIONS)))
