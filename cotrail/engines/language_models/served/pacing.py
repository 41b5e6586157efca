"""Pacing of requests to a hosted model, by the limits of its account."""

import logging
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TypeVar

from cotrail.common.humanize import duration
from cotrail.core.ports.rate_limiter import Limits, Need, RateLimiter
from cotrail.engines.language_models.served.rate_headers import told_limits
from cotrail.engines.language_models.served.refusals import ATTEMPTS
from cotrail.engines.server_address import ServerAddress
from cotrail.errors import BusyError

Done = TypeVar("Done")

logger = logging.getLogger(__name__)

LONGEST_WAIT = 20.0
"""Seconds that a step waits for its turn at most; where it takes longer, the step is given back."""

SMOOTHING = 0.1
"""Weight of the latest text in the mean share of the most tokens that texts have."""


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
        self._limits = self._set
        self._share = 1.0
        self._lock = Lock()

    def wait(self, need: Need, sleep: Callable[[float], None]) -> Need:
        """Waits until a request may be sent; returns what was reserved for it. Raises BusyError.

        need: what it may take at most; sleep: waits for seconds, and raises Interrupted where the step is cancelled.
        """
        reserved = Need(input_tokens=need.input_tokens, output_tokens=need.output_tokens * self._share)
        seconds = self._limiter.reserve(self._pool, reserved, self._limits, LONGEST_WAIT)
        if seconds > LONGEST_WAIT:
            raise BusyError(f"waiting for {self._limit_in_words()}", seconds)
        sleep(seconds)
        # Others may have been refused meanwhile.
        while (seconds := self._limiter.pause(self._pool)) > 0:
            if seconds > LONGEST_WAIT:
                self._limiter.settle(self._pool, _negative(reserved), self._limits)
                raise BusyError(f"waiting for {self._name}, which asked for a pause of {duration(seconds)}", seconds)
            sleep(seconds)
        return reserved

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
        self._limiter.settle(self._pool, more, self._limits)
        if need.output_tokens:
            with self._lock:
                self._share += SMOOTHING * (min(1.0, used.output_tokens / need.output_tokens) - self._share)

    def refused(self, seconds: float | None) -> None:
        """Has all requests of the account wait, as one was refused."""
        self._limiter.refused(self._pool, seconds)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Takes the limits that a response tells; those that the table sets are never exceeded."""
        told = told_limits(headers)
        limits = self._set.within(told) if any(told.values) else self._limits
        if limits != self._limits:
            logger.info("%s: the limits a minute are now %s", self._name, limits)
            self._limits = limits

    def _limit_in_words(self) -> str:
        requests = self._limits.requests
        return f"the limits of {self._name}" + (f", {requests:g} requests a minute" if requests else "")


def _negative(need: Need) -> Need:
    requests, input_tokens, output_tokens, _ = need.values
    return Need(requests=-requests, input_tokens=-input_tokens, output_tokens=-output_tokens)
