"""Pacing of requests to a hosted model, by the limits of its account and by what headers of responses say of them."""

import logging
import math
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from msgspec.structs import asdict

from cotrail.common.humanize import duration
from cotrail.common.toml_files import read_toml
from cotrail.core.ports.rate_limiter import DIMENSIONS, OUTDATED, Dimension, Limits, Need, RateLimiter
from cotrail.engines.language_models.served.refusals import ATTEMPTS, LONGEST_PAUSE
from cotrail.engines.server_address import ServerAddress
from cotrail.errors import BusyError

# Headers in which providers tell their limits, and how long to wait.

MOST_A_MINUTE = 1e9
"""The highest limit that a header is believed."""

_NAMES: Mapping[str, Any] = read_toml(Path(__file__).with_name("names.toml"))
_LIMITS: Mapping[str, Dimension] = _NAMES["limits"]

_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_PART.pattern}){{1,5}}")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def told_limits(headers: Mapping[str, str]) -> Limits:
    """The limits a minute that a response's headers tell, in their lower-case names; 0 for what they don't."""
    lowest: dict[str, float] = {}
    for name, dimension in _LIMITS.items():
        found = (headers.get(f"x-ratelimit-limit-{name}"), headers.get(f"anthropic-ratelimit-{name}-limit"))
        values = [value for text in found if (value := _number(text)) is not None]
        values = [value for value in values if _NAMES["least_a_minute"][dimension] <= value <= MOST_A_MINUTE]
        if values:
            lowest[dimension] = min([*values, *([lowest[dimension]] if dimension in lowest else [])])
    return Limits(**{dimension: lowest.get(dimension, 0.0) for dimension in DIMENSIONS})


def allows_nothing(headers: Mapping[str, str]) -> bool:
    """Return whether a limit of a minute is none at all, as Mistral tells it of models that a plan doesn't have."""
    return any(_number(headers.get(f"x-ratelimit-limit-{name}-minute")) == 0 for name in ("req", "tokens"))


def pause_asked(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait behind a refusal; None where the headers don't say, or name a time that is over.

    `retry-after-ms` comes before `retry-after`, as in OpenAI's client, and both before the times at which limits are
    reset, of which the latest of those that are used up counts.
    """
    # A server that refuses a request and says not to wait is wrong: it would refuse the next ones too.
    if milliseconds := _number(headers.get("retry-after-ms")):
        return min(milliseconds / 1000, LONGEST_PAUSE)
    if seconds := seconds_to_wait(headers.get("retry-after")):
        return min(seconds, LONGEST_PAUSE)
    resets = [
        reset
        for name in _LIMITS
        if _number(_either(headers, name, "remaining")) == 0
        if (reset := _reset(headers, name))
    ]
    return min(max(resets), LONGEST_PAUSE) if resets else None


def seconds_to_wait(value: str | None) -> float | None:
    """Seconds to wait by a `Retry-After` header, which has seconds or a date; None where it is unusable."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value, parsedate_to_datetime)
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(date: str, read: Callable[[str], datetime]) -> float | None:
    try:
        when = read(date)
    except (ValueError, OverflowError):
        return None
    return max((when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)


def _either(headers: Mapping[str, str], name: str, what: str) -> str | None:
    return headers.get(f"x-ratelimit-{what}-{name}") or headers.get(f"anthropic-ratelimit-{name}-{what}")


def _reset(headers: Mapping[str, str], name: str) -> float | None:
    """Seconds until a limit is reset: a duration as `1m30s`, seconds, or a date."""
    text = (_either(headers, name, "reset") or "").strip()
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if (seconds := _number(text)) is not None:
        return seconds
    return _seconds_until(text, datetime.fromisoformat)


def _number(text: str | None) -> float | None:
    """A finite number of at least 0; None for anything else."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


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
        set_ = asdict(endpoint.limits) if endpoint.limits else {}
        self._set = Limits(**{name: limit for name, limit in set_.items() if limit is not None})
        self._told = Limits()
        self._shared = 0.0
        self._read, self._written = _Share(), _Share()

    def asking(self) -> AbstractContextManager[None]:
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
