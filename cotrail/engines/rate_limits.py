"""Pools of what accounts may use, in this process.

Each dimension of a pool is a schedule: the time at which all that was reserved will have been allowed, at the limit's
rate. A request is sent at that time (the generic cell rate algorithm, ITU-T I.371). Providers hold limits of a minute
over shorter times too, so that evenly spaced requests are the most that is never refused. Tokens, of which requests
take more or less, may make up for the last few seconds, or several limits together would leave a part of each unused.

What nobody tells is found out: requests begin slowly and double as long as none is refused. From then on refusals bound
their rate. Between two refusals a provider takes just what it allows, so that is what the rate falls back to.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import exp
from threading import Lock

from msgspec import Struct

from cotrail.core.ports.rate_limiter import DIMENSIONS, OUTDATED, Limits, Need

MINUTE = 60.0

USED = 0.98
"""The share of a limit that is used: clocks and networks move requests a little."""

APART = 0.985
"""The share of a limit at which requests leave at least, where some are late: they catch up, but not all at once."""

FIRST_RATE, LOWEST_RATE, HIGHEST_RATE = 20.0, 1 / MINUTE, 1e6
"""Requests a second of a pool of which nothing is known, and the bounds of what it becomes."""

DOUBLING_SECONDS = 1.0
"""After how many seconds without a refusal the rate is doubled, where there never was one."""

CREDIT_SECONDS = 5.0
"""How many seconds' worth of tokens that weren't used may be used later; providers hold those of a minute."""

FIRST_PAUSE = 1.0
"""Seconds of the pause after a refusal that doesn't tell one; each further one in a row doubles it."""

LONGEST_PAUSE = 60.0
"""The most seconds of such a pause."""

DECREASE = 0.8
"""What a refusal leaves of the rate at least."""

BELOW = 0.97
"""What is taken of the rate that was let through since the refusal before."""

FEW = 10
"""How many requests say nothing yet about the rate that is let through."""

INCREASE = 0.001
"""By what share a rate grows after the first `CLEAN_SECONDS` without a refusal, by four times that after the next, by
nine times after the third and so on: slowly near the rate that was refused, and then faster (as CUBIC does)."""

CLEAN_SECONDS = 5.0

INCIDENT_SECONDS = 1.0
"""Refusals within so many seconds have one cause, and lower the rate once."""

CLEAN = 20
"""After how many such times without a refusal those before are forgotten, and the rate is doubled again."""

SMOOTHING_SECONDS = 10.0
"""Over how many seconds the rate of requests is averaged; after as many without a request that begins again."""

LONGEST_LINE = 30.0
"""Over how many seconds those that wait are spread at most. More of them come in several rounds: some may have gone."""


class Pool(Struct):
    """What is known of an account's share of a model; all times are of one clock, in seconds.

    free: when all that was reserved will have been allowed, in the order of `DIMENSIONS`.
    announced: the limits that the provider announces; told_at: when the request was sent to which it did.
    plan: how often the schedule was made again.
    paused: until when it is to be left alone; refusals: how many came in a row; refused_at: when the last one counted.
    rate: the most requests a second; changed: when that was last changed; clean: how often it grew since a refusal.
    refused: 1 where refusals bound the rate, else 0.
    since: of the last refusal, or of the first request; sent: how many were sent since then and not refused.
    seen: the average of requests a second; asked: when the last one was.
    line: when the next of those that wait is to come again; left: when the last of those that were sent did.
    """

    free: list[float]
    announced: Limits = Limits()
    told_at: float = 0.0
    plan: int = 0
    paused: float = 0.0
    refusals: int = 0
    refused_at: float = 0.0
    rate: float = FIRST_RATE
    changed: float = 0.0
    clean: int = 0
    refused: int = 0
    since: float = 0.0
    sent: int = 0
    seen: float = 0.0
    asked: float = 0.0
    line: float = 0.0
    left: float = 0.0


def reserve(pool: Pool, now: float, need: Need, limits: Limits, longest: float) -> float:
    """See `RateLimiter`; now: the time."""
    if now - max(pool.asked, pool.since) > SMOOTHING_SECONDS:
        pool.since, pool.sent, pool.seen = now, 0, 0.0
        pool.free = [max(free, now) for free in pool.free]
    _grow(pool, now)
    rates = _rates(pool, limits)
    start = _start(pool, now, rates)
    if start - now > longest:
        return start - now
    for place, (amount, rate) in enumerate(zip(need.values, rates, strict=True)):
        if rate:
            pool.free[place] = max(pool.free[place], start - CREDIT_SECONDS * (place > 0)) + amount / rate
    pool.seen = pool.seen * exp((pool.asked - start) / SMOOTHING_SECONDS) + 1 / SMOOTHING_SECONDS
    pool.asked = start
    return start - now


def line_up(pool: Pool, now: float, need: Need, limits: Limits) -> float:
    """See `RateLimiter`; now: the time."""
    rates = _rates(pool, limits)
    start = _start(pool, now, rates)
    turn = pool.line if start <= pool.line <= start + LONGEST_LINE else start
    pool.line = turn + max(amount / rate for amount, rate in zip(need.values, rates, strict=True) if rate)
    return turn - now


def leave(pool: Pool, now: float, plan: int, limits: Limits) -> float:
    """See `RateLimiter`; now: the time."""
    # Reserved before a refusal or other limits: its place in line is none any more, and it reserves again.
    if pool.plan != plan:
        return OUTDATED
    rate = _rates(pool, limits)[0]
    if (late := _next(pool, rate) - now) > 0:
        return late
    pool.left = max(pool.left + _interval(rate), now)
    pool.sent += 1
    return 0.0


def settle(pool: Pool, more: Need, limits: Limits) -> None:
    """See `RateLimiter`."""
    for place, (amount, rate) in enumerate(zip(more.values, _rates(pool, limits), strict=True)):
        if rate:
            pool.free[place] += amount / rate


def tell(pool: Pool, now: float, limits: Limits, age: float) -> None:
    """See `RateLimiter`; now: the time."""
    # Responses come in another order than requests were sent: what an older one says is outdated.
    if now - age < pool.told_at:
        return
    pool.told_at = now - age
    if pool.announced != limits:
        pool.announced = limits
        pool.refused, pool.line = 0, 0.0  # what refusals taught was of other limits
        _plan_anew(pool, now)


def refused(pool: Pool, now: float, seconds: float | None) -> None:
    """See `RateLimiter`; a refusal within a pause is of a request that was under way, and says nothing new."""
    pool.sent = max(0, pool.sent - 1)
    if now >= max(pool.paused, pool.refused_at + INCIDENT_SECONDS):
        pool.refusals = 1 if pool.sent >= FEW else pool.refusals + 1
        pool.rate = _rate_left(pool, now)
        pool.changed = pool.since = pool.refused_at = now
        pool.sent, pool.clean, pool.refused = 0, 0, 1
    doubled = min(FIRST_PAUSE * 2 ** min(pool.refusals - 1, 10), LONGEST_PAUSE)
    pool.paused = max(pool.paused, now + (doubled if seconds is None else seconds))
    _plan_anew(pool, pool.paused)


def _plan_anew(pool: Pool, start: float) -> None:
    """Drops what is reserved and not sent yet: it was spaced by what doesn't hold any more."""
    pool.plan += 1
    pool.free = [min(free, start) for free in pool.free]


def _start(pool: Pool, now: float, rates: list[float]) -> float:
    free = (free for free, rate in zip(pool.free, rates, strict=True) if rate)
    return max(now, pool.paused, _next(pool, rates[0]), *free)


def _next(pool: Pool, rate: float) -> float:
    """When the next request may leave: of a second's worth half may be late, as providers hold so much together."""
    return pool.left + min(_interval(rate), (3 * _interval(rate) - 1) / 2)


def _interval(rate: float) -> float:
    return USED / APART / rate


def _rates(pool: Pool, limits: Limits) -> list[float]:
    """The rates a second, 0 where nothing is known; that of requests also by refusals."""
    rates = [limit * USED / MINUTE for limit in limits.within(pool.announced).values]
    return [min(rates[0] or pool.rate, pool.rate), *rates[1:]]


def _grow(pool: Pool, now: float) -> None:
    """Has the rate of requests grow where none was refused for a while."""
    pool.changed = pool.changed or now
    unrefused, factor = now - max(pool.changed, pool.paused), 1.0
    if not pool.refused and unrefused > DOUBLING_SECONDS:
        factor = 2.0
    elif unrefused > CLEAN_SECONDS:
        pool.clean, pool.refusals = pool.clean + 1, 0
        pool.refused = int(pool.clean < CLEAN)
        factor += INCREASE * pool.clean**2
    if factor > 1:
        pool.rate, pool.changed = min(pool.rate * factor, HIGHEST_RATE), now


def _rate_left(pool: Pool, now: float) -> float:
    """The rate behind a refusal: a little less than was let through, within what was asked for and most of that."""
    seconds = max(now - pool.since, 0.1)
    asked = _rates(pool, pool.announced)[0]
    if pool.seen and not pool.refused:
        # The average begins at 0. Divided by this, it is that of the seconds that have passed.
        asked = min(asked, pool.seen / (1 - exp(-seconds / SMOOTHING_SECONDS)))
    # A single refusal behind few requests may be due to one that was late.
    least = asked * (BELOW if pool.refusals == 1 and pool.sent < FEW else DECREASE)
    return max(LOWEST_RATE, min(asked, max(BELOW * pool.sent / seconds, least)))


class ProcessLimiter:
    """See `RateLimiter`: the pools of one process; safe for many threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._pools: dict[str, Pool] = {}

    def asking(self) -> AbstractContextManager[None]:
        return nullcontext()

    def reserve(self, pool: str, need: Need, limits: Limits, longest: float) -> float:
        with self._lock:
            return reserve(self._pool(pool), self._clock(), need, limits, longest)

    def line_up(self, pool: str, need: Need, limits: Limits) -> float:
        with self._lock:
            return line_up(self._pool(pool), self._clock(), need, limits)

    def leave(self, pool: str, plan: int, limits: Limits) -> float:
        with self._lock:
            return leave(self._pool(pool), self._clock(), plan, limits)

    def settle(self, pool: str, more: Need, limits: Limits) -> None:
        with self._lock:
            settle(self._pool(pool), more, limits)

    def tell(self, pool: str, limits: Limits, age: float) -> None:
        with self._lock:
            tell(self._pool(pool), self._clock(), limits, age)

    def refused(self, pool: str, seconds: float | None) -> None:
        with self._lock:
            refused(self._pool(pool), self._clock(), seconds)

    def plan(self, pool: str) -> int:
        with self._lock:
            return self._pool(pool).plan

    def pause(self, pool: str) -> float:
        with self._lock:
            return max(0.0, self._pool(pool).paused - self._clock())

    def _pool(self, name: str) -> Pool:
        return self._pools.setdefault(name, Pool(free=[0.0] * len(DIMENSIONS)))
