"""Pacing of requests to a hosted model, by the limits of its account."""

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from threading import Lock
from typing import TypeVar

from cotrail.common.humanize import duration
from cotrail.core.ports.rate_limiter import OUTDATED, Limits, Need, RateLimiter
from cotrail.engines.language_models.served.rate_headers import told_limits
from cotrail.engines.language_models.served.refusals import ATTEMPTS
from cotrail.engines.server_address import ServerAddress
from cotrail.errors import BusyError

Done = TypeVar("Done")

logger = logging.getLogger(__name__)

LONGEST_WAIT = 4.0
"""Seconds that a step waits for its turn at most; where it takes longer, the step is given back.

Steps that were given back are sent again once a second: what waits here meanwhile keeps the account busy.
"""

EARLY = LONGEST_WAIT / 2
"""How many seconds before its turn a step that was given back is to come again."""

SOONEST = 0.5
"""The fewest seconds for which a step is given back."""

TELLING_SECONDS = 10.0
"""After how many seconds the others get the limits again: Redis may have been away, or have lost them."""

SMOOTHING = 0.1
"""Weight of the latest request in the mean of what requests take."""


class _Share:
    """The mean share that requests take of what was expected: of an estimate, or of the most that they may take."""

    def __init__(self) -> None:
        self.mean = 1.0
        self._number = 1
        self._lock = Lock()

    def add(self, used: float, expected: float) -> None:
        if expected:
            with self._lock:
                self._number += 1
                self.mean += max(SMOOTHING, 1 / self._number) * (used / expected - self.mean)


class Pacing:
    """Has a model's requests wait until its account may send them."""

    def __init__(self, endpoint: ServerAddress, limiter: RateLimiter) -> None:
        self._limiter = limiter
        self._pool = f"{endpoint.account_name}/{endpoint.model}"
        self._name = f"{endpoint.model} ({endpoint.account_name})"
        set_ = endpoint.limits
        self._set = Limits(
            requests=set_.requests or 0.0 if set_ else 0.0,
            input_tokens=set_.input_tokens or 0.0 if set_ else 0.0,
            output_tokens=set_.output_tokens or 0.0 if set_ else 0.0,
        )
        self._told = Limits()
        self._shared = 0.0
        self._read, self._written = _Share(), _Share()

    def asking(self) -> AbstractContextManager[None]:
        """A block in which a thread does nothing but wait: for its turn, and for the answer."""
        return self._limiter.asking()

    def wait(self, need: Need, sleep: Callable[[float], None]) -> Need:
        """Waits until a request may be sent; returns what was reserved for it. Raises BusyError.

        need: what it may take at most; sleep: waits for seconds, and raises Interrupted where the step is cancelled.
        """
        turn = self.turn(need)
        while True:
            try:
                sleep(next(turn))
            except StopIteration as over:
                reserved: Need = over.value
                return reserved

    def turn(self, need: Need) -> Generator[float, None, Need]:
        """Yields for how many seconds to wait, again and again until a request may be sent; else as `wait`."""
        reserved = Need(
            input_tokens=need.input_tokens * self._read.mean, output_tokens=need.output_tokens * self._written.mean
        )
        # Others may be refused while this one waits: then it waits again, or all would be sent as the pause ends.
        while True:
            # Asked before the reservation: a refusal between the two makes the plan outdated, and this waits again.
            plan = self._limiter.plan(self._pool)
            seconds = self._limiter.reserve(self._pool, reserved, self._set, LONGEST_WAIT)
            if seconds > LONGEST_WAIT:
                raise self._busy(reserved)
            yield seconds
            while (late := self._limiter.leave(self._pool, plan, self._set)) > 0:
                yield late
            if late != OUTDATED:
                return reserved

    def _busy(self, need: Need) -> BusyError:
        pause = self._limiter.pause(self._pool)
        turn = self._limiter.line_up(self._pool, need, self._set)
        asked = f"{self._name}, which asked for a pause of {duration(pause)}" if pause else self._limits_in_words()
        return BusyError(f"waiting for {asked}", max(turn - EARLY, pause, SOONEST))

    def send(self, need: Need, sleep: Callable[[float], None], ask: Callable[[], Done]) -> tuple[Done, Need]:
        """What `ask` returns, once a request may be sent and again where that was too early, and what was reserved.

        need, sleep: see `wait`. Raises BusyError, and what `ask` raises.
        """
        attempt = 1
        while True:
            reserved = self.wait(need, sleep)
            try:
                return ask(), reserved
            except BusyError as error:
                self.refused(error.seconds)
                # For a longer pause the step is given back: here it would hold a thread all the while.
                if attempt == ATTEMPTS or (error.seconds or 0) > LONGEST_WAIT:
                    raise
            attempt += 1

    def settle(self, need: Need, reserved: Need, used: Need) -> None:
        """Corrects the reservation of a request that was answered; need: what it might have taken at most."""
        more = Need(
            requests=0,
            input_tokens=used.input_tokens - reserved.input_tokens,
            output_tokens=used.output_tokens - reserved.output_tokens,
        )
        self._limiter.settle(self._pool, more, self._set)
        # Against the most it might have taken, of which the next reservations then take the usual share.
        self._read.add(used.input_tokens, need.input_tokens)
        self._written.add(used.output_tokens, need.output_tokens)

    def refused(self, seconds: float | None) -> None:
        """Has all requests of the account wait, as one was refused."""
        self._limiter.refused(self._pool, seconds)

    def learn(self, headers: Mapping[str, str], sent: float, received: float) -> None:
        """Takes the limits that a response tells; those that the table sets are never exceeded.

        sent, received: when its request was sent and the response came, in seconds of the same clock.
        """
        announced = told_limits(headers)
        if not any(announced.values) or (announced == self._told and received - self._shared < TELLING_SECONDS):
            return
        if announced != self._told:
            logger.info("%s: the limits a minute are now %s", self._name, announced)
        self._told, self._shared = announced, received
        self._limiter.tell(self._pool, announced, received - sent)

    def _limits_in_words(self) -> str:
        limits = self._set.within(self._told)
        known = zip(("requests", "tokens read", "tokens written", "tokens"), limits.values, strict=True)
        words = ", ".join(f"{limit:,.0f} {what}" for what, limit in known if limit)
        return f"the limits of {self._name}" + (f": {words} a minute" if words else "")
