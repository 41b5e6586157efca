"""Limits of providers, shared by all processes on all machines through Redis."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Literal

from redis import BlockingConnectionPool, Redis, RedisError

from cotrail.core.ports.rate_limiter import OUTDATED, Limits, Need
from cotrail.engines.rate_limits import (
    APART,
    BELOW,
    CLEAN,
    CLEAN_SECONDS,
    CREDIT_SECONDS,
    DECREASE,
    DOUBLING_SECONDS,
    FEW,
    FIRST_PAUSE,
    FIRST_RATE,
    HIGHEST_RATE,
    INCIDENT_SECONDS,
    INCREASE,
    LONGEST_LINE,
    LONGEST_PAUSE,
    LOWEST_RATE,
    MINUTE,
    SMOOTHING_SECONDS,
    USED,
    ProcessLimiter,
)

# The pools of `cotrail.engines.rate_limits.pools` in Redis, as a script in Lua: one call is one atomic change.
#
# Times are those of Redis, so that clocks of machines don't matter. A pool that nobody uses for an hour is forgotten.

SCRIPT = f"""
local now = redis.call('TIME')
now = tonumber(now[1]) + tonumber(now[2]) / 1000000
local names = {{'free1', 'free2', 'free3', 'free4', 'announced1', 'announced2', 'announced3',
    'announced4', 'told_at', 'plan', 'paused', 'refusals', 'refused_at', 'rate', 'changed', 'clean',
    'refused', 'since', 'sent', 'seen', 'asked', 'line', 'left'}}
local values = redis.call('HMGET', KEYS[1], unpack(names))
local pool = {{}}
for place, name in ipairs(names) do pool[name] = tonumber(values[place] or '0') end
if pool.rate == 0 then pool.rate = {FIRST_RATE} end
local limits = {{tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])}}
local amounts = {{tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])}}
local last = tonumber(ARGV[10])

local function rates()
    local found = {{}}
    for place = 1, 4 do
        local announced, limit = pool['announced' .. place], limits[place]
        if limit == 0 or (announced > 0 and announced < limit) then limit = announced end
        found[place] = limit * {USED} / {MINUTE}
    end
    if found[1] == 0 or pool.rate < found[1] then found[1] = pool.rate end
    return found
end

local function interval(rate) return {USED} / {APART} / rate end

local function following(rate)
    return pool.left + math.min(interval(rate), (3 * interval(rate) - 1) / 2)
end

local function start(rates)
    local at = math.max(now, pool.paused, following(rates[1]))
    for place = 1, 4 do
        if rates[place] > 0 then at = math.max(at, pool['free' .. place]) end
    end
    return at
end

local function grow()
    if pool.changed == 0 then pool.changed = now end
    local unrefused, factor = now - math.max(pool.changed, pool.paused), 1
    if pool.refused == 0 and unrefused > {DOUBLING_SECONDS} then
        factor = 2
    elseif unrefused > {CLEAN_SECONDS} then
        pool.clean, pool.refusals = pool.clean + 1, 0
        if pool.clean >= {CLEAN} then pool.refused = 0 else pool.refused = 1 end
        factor = 1 + {INCREASE} * pool.clean ^ 2
    end
    if factor > 1 then pool.rate, pool.changed = math.min(pool.rate * factor, {HIGHEST_RATE}), now end
end

local function rate_left()
    local seconds = math.max(now - pool.since, 0.1)
    for place = 1, 4 do limits[place] = pool['announced' .. place] end
    local asked = rates()[1]
    if pool.seen > 0 and pool.refused == 0 then
        asked = math.min(asked, pool.seen / (1 - math.exp(-seconds / {SMOOTHING_SECONDS})))
    end
    local least = asked * {DECREASE}
    if pool.refusals == 1 and pool.sent < {FEW} then least = asked * {BELOW} end
    local left = math.max({BELOW} * pool.sent / seconds, least)
    return math.max({LOWEST_RATE}, math.min(asked, left))
end

local change = {{}}

function change.reserve()
    if now - math.max(pool.asked, pool.since) > {SMOOTHING_SECONDS} then
        pool.since, pool.sent, pool.seen = now, 0, 0
        for place = 1, 4 do pool['free' .. place] = math.max(pool['free' .. place], now) end
    end
    grow()
    local rates = rates()
    local start = start(rates)
    if start - now <= last then
        for place = 1, 4 do
            if rates[place] > 0 then
                local name, earliest = 'free' .. place, start
                if place > 1 then earliest = start - {CREDIT_SECONDS} end
                pool[name] = math.max(pool[name], earliest) + amounts[place] / rates[place]
            end
        end
        pool.seen = pool.seen * math.exp((pool.asked - start) / {SMOOTHING_SECONDS}) + 1 / {SMOOTHING_SECONDS}
        pool.asked = start
    end
    return start - now
end

function change.line_up()
    local rates = rates()
    local start = start(rates)
    local turn, seconds = pool.line, 0
    if turn < start or turn > start + {LONGEST_LINE} then turn = start end
    for place = 1, 4 do
        if rates[place] > 0 then seconds = math.max(seconds, amounts[place] / rates[place]) end
    end
    pool.line = turn + seconds
    return turn - now
end

function change.leave()
    if pool.plan ~= last then return {OUTDATED} end
    local rate = rates()[1]
    local late = following(rate) - now
    if late > 0 then return late end
    pool.left = math.max(pool.left + interval(rate), now)
    pool.sent = pool.sent + 1
    return 0
end

function change.settle()
    for place, rate in ipairs(rates()) do
        if rate > 0 then pool['free' .. place] = pool['free' .. place] + amounts[place] / rate end
    end
    return 0
end

local function plan_anew(start)
    pool.plan = pool.plan + 1
    for place = 1, 4 do pool['free' .. place] = math.min(pool['free' .. place], start) end
end

function change.tell()
    if now - last < pool.told_at then return 0 end
    pool.told_at = now - last
    local changed = false
    for place = 1, 4 do
        local name = 'announced' .. place
        changed = changed or pool[name] ~= limits[place]
        pool[name] = limits[place]
    end
    if changed then
        pool.refused, pool.line = 0, 0
        plan_anew(now)
    end
    return 0
end

function change.refused()
    pool.sent = math.max(0, pool.sent - 1)
    if now >= math.max(pool.paused, pool.refused_at + {INCIDENT_SECONDS}) then
        if pool.sent >= {FEW} then pool.refusals = 0 end
        pool.refusals = pool.refusals + 1
        pool.rate = rate_left()
        pool.changed, pool.since, pool.refused_at = now, now, now
        pool.sent, pool.clean, pool.refused = 0, 0, 1
    end
    local seconds = last
    if seconds < 0 then seconds = math.min({FIRST_PAUSE} * 2 ^ math.min(pool.refusals - 1, 10), {LONGEST_PAUSE}) end
    pool.paused = math.max(pool.paused, now + seconds)
    plan_anew(pool.paused)
    return 0
end

-- These two only read, and so don't write the pool, which would keep it from being forgotten.
if ARGV[1] == 'plan' then return tostring(pool.plan) end
if ARGV[1] == 'pause' then return tostring(math.max(0, pool.paused - now)) end
local answer = change[ARGV[1]]()
local written = {{}}
for _, name in ipairs(names) do
    table.insert(written, name)
    -- Lua's own form of a number has 14 digits, which would cut these times to tenths of a millisecond.
    table.insert(written, string.format('%.6f', pool[name]))
end
redis.call('HSET', KEYS[1], unpack(written))
redis.call('EXPIRE', KEYS[1], 3600)
-- As text: of a number that a script returns, Redis keeps the integer part.
return tostring(answer)
"""

logger = logging.getLogger(__name__)

PREFIX = "cotrail-limits:"
"""Beginning of the keys in Redis."""

PATIENCE_SECONDS = 2.0
"""How long Redis may take to answer."""

CONNECTIONS, TURN_SECONDS = 8, 30.0
"""Connections to Redis of a process, which its threads share, and how long one of them may wait for its turn: hundreds
may ask at once, and none takes long."""

AWAY_SECONDS = 10.0
"""How long Redis isn't asked again after it didn't answer."""

_NO_LIMITS, _NO_NEED = Limits(), Need(requests=0)

Operation = Literal["reserve", "line_up", "leave", "settle", "tell", "refused", "plan", "pause"]


class SharedLimiter:
    """See `RateLimiter`. Without Redis each process keeps limits of its own, as everything here is soft.

    url: of Redis; asking_now: how many threads ask hosted models.
    """

    def __init__(self, url: str) -> None:
        # Celery has a name of its own for Unix sockets.
        url = url.replace("redis+socket://", "unix://", 1)
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=CONNECTIONS,
            timeout=TURN_SECONDS,
            socket_timeout=PATIENCE_SECONDS,
            socket_connect_timeout=PATIENCE_SECONDS,
        )
        self._script = Redis(connection_pool=pool).register_script(SCRIPT)
        self._own = ProcessLimiter()
        self._away_until = 0.0
        self._lock = Lock()
        self.asking_now = 0

    @contextmanager
    def asking(self) -> Iterator[None]:
        """See `RateLimiter`."""
        with self._lock:
            self.asking_now += 1
        try:
            yield
        finally:
            with self._lock:
                self.asking_now -= 1

    def reserve(self, pool: str, need: Need, limits: Limits, longest: float) -> float:
        """See `RateLimiter`."""
        wait = self._ask("reserve", pool, limits, need, longest)
        return self._own.reserve(pool, need, limits, longest) if wait is None else wait

    def line_up(self, pool: str, need: Need, limits: Limits) -> float:
        """See `RateLimiter`."""
        wait = self._ask("line_up", pool, limits, need)
        return self._own.line_up(pool, need, limits) if wait is None else wait

    def leave(self, pool: str, plan: int, limits: Limits) -> float:
        """See `RateLimiter`."""
        wait = self._ask("leave", pool, limits, last=plan)
        return self._own.leave(pool, plan, limits) if wait is None else wait

    def settle(self, pool: str, more: Need, limits: Limits) -> None:
        """See `RateLimiter`."""
        if self._ask("settle", pool, limits, more) is None:
            self._own.settle(pool, more, limits)

    def tell(self, pool: str, limits: Limits, age: float) -> None:
        """See `RateLimiter`."""
        # To both: once Redis is away, this process goes by its own pools, which must know the limits by then.
        self._ask("tell", pool, limits, last=age)
        self._own.tell(pool, limits, age)

    def refused(self, pool: str, seconds: float | None) -> None:
        """See `RateLimiter`."""
        self._ask("refused", pool, last=-1.0 if seconds is None else seconds)
        self._own.refused(pool, seconds)

    def plan(self, pool: str) -> int:
        """See `RateLimiter`."""
        plan = self._ask("plan", pool)
        return self._own.plan(pool) if plan is None else int(plan)

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
            # Otherwise each of hundreds of threads would wait for the timeout with every request that it sends.
            self._away_until = time.monotonic() + AWAY_SECONDS
            logger.warning("Redis doesn't answer, so that this process keeps to limits of its own: %s", error)
            return None
