"""Followers of runs as a process of their own: `python -m benchmarks.watchers PORT EACH RUN...`, `EACH` for each run.

Each reads the stream of its run to the end over a connection of its own. Prints a JSON object: how many streams broke
off, or missed or repeated a step; the milliseconds from each commit to the arrival of its event, where the follower was
there before it; and the seconds after which all had read what was there before.
"""

import asyncio
import json
import sys
import time
from datetime import datetime

import msgspec
from msgspec import Struct

LIMIT = 2**20
"""The most bytes of a line."""


class _Event(Struct):
    """What is read of an event."""

    event: str
    at: datetime | None = None
    step: int | None = None
    state: str = ""
    id: str = ""


class Watcher:
    """A follower of a run."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.steps: list[int] = []
        self.late: list[float] = []
        self.ended = False
        self.there: float | None = None

    async def watch(self, port: int) -> None:
        """Read its stream to the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LIMIT)
        writer.write(f"GET /v1/runs/{self.run}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        decoder = msgspec.json.Decoder(_Event)
        while not self.ended and (line := await reader.readline()):
            if line.startswith(b"data: "):
                self._take(decoder.decode(line[6:]))
        writer.close()

    def _take(self, event: _Event) -> None:
        if event.event == "step" and event.step is not None and event.at is not None:
            self.steps.append(event.step)
            if self.there is not None and (at := event.at.timestamp()) > self.there:
                self.late.append(time.time() - at)
        elif event.event == "progress" and self.there is None:
            self.there = time.time()
        self.ended = event.event == "end"


async def main(port: int, each: int, runs: list[str]) -> None:
    """Follow all, and print what came of it."""
    began = time.time()
    watchers = [Watcher(run) for run in runs for _ in range(each)]
    done = await asyncio.gather(*(watcher.watch(port) for watcher in watchers), return_exceptions=True)
    broken = sum(isinstance(each, BaseException) for each in done) + sum(not each.ended for each in watchers)
    whole = {run: max((len(set(each.steps)) for each in watchers if each.run == run), default=0) for run in runs}
    wrong = sum(len(each.steps) != len(set(each.steps)) or len(each.steps) != whole[each.run] for each in watchers)
    late = sorted(1000 * seconds for each in watchers for seconds in each.late)
    there = max(each.there or began for each in watchers) - began
    events, steps = sum(len(each.steps) for each in watchers), min(whole.values())
    told = {"broken": broken, "wrong": wrong, "events": events, "steps": steps, "late": late, "there": there}
    print(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
