"""An account with a provider and its limits, as real ones hold them.

The limits are token buckets. The one of requests holds a second's worth (60 a minute are one a second), those of tokens
hold a minute's. Output is reserved by `max_tokens` and settled afterwards.
"""

import math
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from msgspec import Struct

MINUTE = 60.0

Headers = Literal["openai", "anthropic", "retry-after", "none"]
"""What responses tell: the limits, in one of two forms, and how long to wait; only the latter; nothing."""

Dimension = Literal["requests", "input_tokens", "output_tokens"]

Clock = Callable[[], float]


class Script(Struct, frozen=True, kw_only=True):
    """How the account is: limits a minute, what is told, and whether refused requests count.

    full: seconds of their rate that buckets of tokens hold at first, so that nobody lives off what they hold.
    answers: least and most seconds of an answer; most: the `max_tokens` that are asked for.
    written: median and spread (sigma) of the log-normal number of tokens that are written, `most` at most.
    """

    limits: Mapping[Dimension, float]
    headers: Headers = "openai"
    counts_refused: bool = False
    full: float = 30.0
    answers: tuple[float, float] = (0.5, 2.0)
    most: int = 400
    written: tuple[float, float] = (100, 0.5)


class Bucket:
    """A token bucket; rate: what it gives in a minute; seconds: of that rate that it holds; full: those at first."""

    def __init__(self, rate: float, seconds: float, full: float, clock: Clock) -> None:
        self.rate = rate
        self._clock = clock
        self._seconds = seconds
        self._level = max(1.0, rate / MINUTE * full)
        self._at = clock()

    @property
    def holds(self) -> float:
        """The most that it can hold."""
        return max(1.0, self.rate / MINUTE * self._seconds)

    def level(self) -> float:
        """What it holds now."""
        now = self._clock()
        self._level = min(self.holds, self._level + (now - self._at) * self.rate / MINUTE)
        self._at = now
        return self._level

    def take(self, amount: float) -> None:
        """Takes out what was asked for; less than nothing may be left, but no less than its size."""
        self._level = max(-self.holds, min(self.level() - amount, self.holds))

    def until(self, amount: float) -> float:
        """Seconds until it holds so much."""
        return max(0.0, amount - self.level()) * MINUTE / self.rate


class Seen(Struct):
    """What was asked and let through in a span of time; used: what that took, by dimension."""

    answered: int = 0
    refused: int = 0
    most_under_way: int = 0
    used: dict[str, float] = {}

    def shares(self, limits: Mapping[Dimension, float], seconds: float) -> dict[str, float]:
        """The share of each limit that was used in so many seconds."""
        return {name: self.used.get(name, 0) / (limit * seconds / MINUTE) for name, limit in limits.items()}

    @property
    def refused_share(self) -> float:
        """The share of the requests that was refused."""
        return self.refused / max(1, self.answered + self.refused)


class Answer(Struct, frozen=True):
    """A request that is let through: what it may write at most and writes, in how many seconds, and the headers."""

    most: int
    written: int
    seconds: float
    headers: dict[str, str]


class Account:
    """Lets requests through or refuses them; `seen` may be replaced to begin a new count."""

    def __init__(self, script: Script, clock: Clock = time.monotonic) -> None:
        self.script = script
        self.seen = Seen()
        self._random = random.Random(1)
        self._buckets = {name: _bucket(script, name, clock) for name in script.limits}
        self._under_way = 0

    def change(self, factor: float) -> None:
        """Multiplies all limits."""
        for bucket in self._buckets.values():
            bucket.rate *= factor

    def ask(self, read: int, most: int) -> Answer | dict[str, str]:
        """What becomes of a request that reads so many tokens and writes `most`; the headers where it is refused."""
        asked = {"requests": 1.0, "input_tokens": float(read), "output_tokens": float(most)}
        waits = {name: bucket.until(asked[name]) for name, bucket in self._buckets.items()}
        if any(waits.values()):
            self.seen.refused += 1
            if self.script.counts_refused and "requests" in self._buckets:
                self._buckets["requests"].take(1)
            return self._told(max(waits.values()))
        for name, bucket in self._buckets.items():
            bucket.take(asked[name])
        median, spread = self.script.written
        written = min(most, max(1, round(self._random.lognormvariate(math.log(median), spread))))
        self._count({"requests": 1, "input_tokens": read, "output_tokens": written})
        return Answer(most, written, self._random.uniform(*self.script.answers), self._told())

    def end(self, answer: Answer) -> None:
        """Settles what an answer has taken."""
        self._under_way -= 1
        if "output_tokens" in self._buckets:
            self._buckets["output_tokens"].take(answer.written - answer.most)

    def _count(self, used: Mapping[str, float]) -> None:
        self.seen.answered += 1
        for name, amount in used.items():
            self.seen.used[name] = self.seen.used.get(name, 0) + amount
        self._under_way += 1
        self.seen.most_under_way = max(self.seen.most_under_way, self._under_way)

    def _told(self, wait: float = 0.0) -> dict[str, str]:
        """The headers of a response; wait: how long to wait where it is a refusal."""
        match self.script.headers:
            case "none":
                return {}
            case "retry-after":
                return _retry_after(wait)
            case "anthropic":
                told = [_anthropic(dimension, bucket) for dimension, bucket in self._buckets.items()]
                return {name: value for headers in told for name, value in headers.items()} | _retry_after(wait)
        told = [_openai(dimension, bucket) for dimension, bucket in self._buckets.items()]
        asked = {"retry-after-ms": str(math.ceil(wait * 1000))} if wait else {}
        return {name: value for headers in told for name, value in headers.items()} | asked


def _bucket(script: Script, name: Dimension, clock: Clock) -> Bucket:
    held = (1.0, 1.0) if name == "requests" else (MINUTE, script.full)
    return Bucket(script.limits[name], *held, clock)


def _retry_after(wait: float) -> dict[str, str]:
    return {"retry-after": str(math.ceil(wait))} if wait else {}


def _openai(dimension: str, bucket: Bucket) -> dict[str, str]:
    name = "requests" if dimension == "requests" else "tokens"
    return {
        f"x-ratelimit-limit-{name}": f"{bucket.rate:.0f}",
        f"x-ratelimit-remaining-{name}": f"{max(0.0, bucket.level()):.0f}",
        f"x-ratelimit-reset-{name}": f"{bucket.until(bucket.holds):.3f}s",
    }


def _anthropic(dimension: str, bucket: Bucket) -> dict[str, str]:
    name = f"anthropic-ratelimit-{dimension.replace('_', '-')}"
    reset = datetime.now(UTC) + timedelta(seconds=bucket.until(bucket.holds))
    return {
        f"{name}-limit": f"{bucket.rate:.0f}",
        f"{name}-remaining": f"{max(0.0, bucket.level()):.0f}",
        f"{name}-reset": reset.isoformat(),
    }
