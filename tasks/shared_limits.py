"""Limits of providers, shared by all processes on all machines through Redis."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from string import Template
from threading import Lock
from typing import Literal

from redis import BlockingConnectionPool, Redis, RedisError

from cotrail.core.ports.rate_limiter import Limits, Need
from cotrail.engines import rate_limits
from cotrail.engines.rate_limits import ProcessLimiter

SCRIPT = Template(files("cotrail.tasks").joinpath("shared_limits.lua").read_text()).substitute(vars(rate_limits))
"""The pools of `cotrail.engines.rate_limits.pools` in Redis."""

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
        with self._lock:
            self.asking_now += 1
        try:
            yield
        finally:
            with self._lock:
                self.asking_now -= 1

    def reserve(self, pool: str, need: Need, limits: Limits, longest: float) -> float:
        wait = self._ask("reserve", pool, limits, need, longest)
        return self._own.reserve(pool, need, limits, longest) if wait is None else wait

    def line_up(self, pool: str, need: Need, limits: Limits) -> float:
        wait = self._ask("line_up", pool, limits, need)
        return self._own.line_up(pool, need, limits) if wait is None else wait

    def leave(self, pool: str, plan: int, limits: Limits) -> float:
        wait = self._ask("leave", pool, limits, last=plan)
        return self._own.leave(pool, plan, limits) if wait is None else wait

    def settle(self, pool: str, more: Need, limits: Limits) -> None:
        if self._ask("settle", pool, limits, more) is None:
            self._own.settle(pool, more, limits)

    def tell(self, pool: str, limits: Limits, age: float) -> None:
        # To both: once Redis is away, this process goes by its own pools, which must know the limits by then.
        self._ask("tell", pool, limits, last=age)
        self._own.tell(pool, limits, age)

    def refused(self, pool: str, seconds: float | None) -> None:
        self._ask("refused", pool, last=-1.0 if seconds is None else seconds)
        self._own.refused(pool, seconds)

    def plan(self, pool: str) -> int:
        plan = self._ask("plan", pool)
        return self._own.plan(pool) if plan is None else int(plan)

    def pause(self, pool: str) -> float:
        wait = self._ask("pause", pool)
        return self._own.pause(pool) if wait is None else wait

    def _ask(
        self, what: Operation, pool: str, limits: Limits = _NO_LIMITS, need: Need = _NO_NEED, last: float = 0.0
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
