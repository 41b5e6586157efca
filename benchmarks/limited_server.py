"""A server of OpenAI's chat API that holds limits as providers do, and answers nothing of sense.

Its limits are token buckets. The one of requests holds a second's worth (60 a minute are one a second), those of tokens
hold a minute's. Output is reserved by `max_tokens` and settled afterwards. A request that doesn't fit is refused (429).
"""

import asyncio
import json
import math
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from msgspec import Struct

MINUTE = 60.0

CHARACTERS = 5
"""Characters of a prompt that count as a token."""

FIRST_SECONDS = 30.0
"""Seconds of its rate that a bucket of tokens holds at first, so that nobody can live off what it holds."""

Headers = Literal["openai", "anthropic", "retry-after", "none"]
"""What responses tell: the limits, in one of two forms, and how long to wait; only the latter; nothing."""

Dimension = Literal["requests", "input_tokens", "output_tokens"]


class Script(Struct, frozen=True, kw_only=True):
    """How the server is: limits a minute, what it tells, and whether refused requests count.

    answers: least and most seconds of an answer; most: the `max_tokens` that are asked for.
    written: median and spread (sigma) of the log-normal number of tokens that it writes, `most` at most.
    """

    limits: Mapping[Dimension, float]
    headers: Headers = "openai"
    counts_refused: bool = False
    answers: tuple[float, float] = (0.5, 2.0)
    most: int = 400
    written: tuple[float, float] = (100, 0.5)


class Bucket:
    """A token bucket; rate: what it gives in a minute; seconds: of that rate that it holds; full: those at first."""

    def __init__(self, rate: float, seconds: float, full: float) -> None:
        self.rate = rate
        self._seconds = seconds
        self._level = max(1.0, rate / MINUTE * full)
        self._at = time.monotonic()

    @property
    def holds(self) -> float:
        """The most that it can hold."""
        return max(1.0, self.rate / MINUTE * self._seconds)

    def level(self) -> float:
        """What it holds now."""
        now = time.monotonic()
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
    """What was asked and answered in a span of time; used: what the answers took, by dimension."""

    answered: int = 0
    refused: int = 0
    most_under_way: int = 0
    used: dict[str, float] = {}


class LimitedServer:
    """The server, in this process's event loop; `seen` may be replaced to begin a new count."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.seen = Seen()
        self._random = random.Random(1)
        self._buckets = {name: self._bucket(name, rate) for name, rate in script.limits.items()}
        self._under_way = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Begins to listen; returns the address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def close(self) -> None:
        """Listens no longer."""
        if self._server is not None:
            self._server.close()

    def change(self, factor: float) -> None:
        """Multiplies all limits."""
        for bucket in self._buckets.values():
            bucket.rate *= factor

    def _bucket(self, name: Dimension, rate: float) -> Bucket:
        return Bucket(rate, 1.0, 1.0) if name == "requests" else Bucket(rate, MINUTE, FIRST_SECONDS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length: ")[2].split("\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                status, content, headers = await self._answer(head.split()[1], body)
                _write(writer, status, content, headers)
                await writer.drain()
        writer.close()

    async def _answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any, dict[str, str]]:
        if not path.endswith("/chat/completions"):
            return 404, {"detail": "Not Found"}, {}
        read = sum(len(message["content"]) for message in body["messages"]) // CHARACTERS
        most = int(body["max_tokens"])
        asked = {"requests": 1.0, "input_tokens": float(read), "output_tokens": float(most)}
        waits = {name: bucket.until(asked[name]) for name, bucket in self._buckets.items()}
        if any(waits.values()):
            self.seen.refused += 1
            if self.script.counts_refused and "requests" in self._buckets:
                self._buckets["requests"].take(1)
            return 429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, self._told(waits)
        for name, bucket in self._buckets.items():
            bucket.take(asked[name])
        return await self._written(read, most)

    async def _written(self, read: int, most: int) -> tuple[int, Any, dict[str, str]]:
        """Writes for a while."""
        median, spread = self.script.written
        written = min(most, max(1, round(self._random.lognormvariate(math.log(median), spread))))
        self.seen.answered += 1
        for name, amount in {"requests": 1, "input_tokens": read, "output_tokens": written}.items():
            self.seen.used[name] = self.seen.used.get(name, 0) + amount
        self._under_way += 1
        self.seen.most_under_way = max(self.seen.most_under_way, self._under_way)
        headers = self._told({})
        await asyncio.sleep(self._random.uniform(*self.script.answers))
        self._under_way -= 1
        if "output_tokens" in self._buckets:
            self._buckets["output_tokens"].take(written - most)
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        choice = {"index": 0, "message": {"role": "assistant", "content": "Brenn."}, "finish_reason": "stop"}
        return 200, {"choices": [choice], "usage": usage}, headers

    def _told(self, waits: Mapping[Dimension, float]) -> dict[str, str]:
        """The headers of a response; waits: how long by dimension, where it is a refusal."""
        longest = max(waits.values(), default=0.0)
        form = self.script.headers
        if form == "none":
            return {}
        asked = {"retry-after": str(math.ceil(longest))} if longest else {}
        if form == "retry-after":
            return asked
        told: dict[str, str] = {}
        for dimension, bucket in self._buckets.items():
            told |= _openai(dimension, bucket) if form == "openai" else _anthropic(dimension, bucket)
        if form == "openai" and longest:
            asked = {"retry-after-ms": str(math.ceil(longest * 1000))}
        return told | asked


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


def _write(writer: asyncio.StreamWriter, status: int, content: Any, headers: Mapping[str, str]) -> None:
    body = json.dumps(content).encode()
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    writer.write(f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode() + body)
