"""What of a hosted model's limits is used, and how many requests are refused, by 1, 4 and 16 processes.

`python -m benchmarks.limits [--only NAME]... [--seconds N] [--output FILE]` starts its own Redis, and for each case
an account (`benchmarks/limited_account.py`), its server, and processes that ask it (`benchmarks/limits_client.py`).
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.limited_account import MINUTE, Account, Script, Seen
from benchmarks.limited_server import LimitedServer
from benchmarks.limits_client import Order
from benchmarks.servers import own_servers
from cotrail.common.humanize import percent
from cotrail.engines.server_address import Limits

WARM_UP_SECONDS = 15.0
"""How long processes ask before anything is counted."""

STEPS = 320
"""How many steps ask at once, in all processes together: more than the limits let under way and wait."""

REQUESTS, INPUT, OUTPUT = 1200, 378_000, 136_000
"""Limits a minute, each of some twenty requests a second."""

PROCESSES = (1, 4, 16)

errors = Console(stderr=True)


class Case(Struct, frozen=True, kw_only=True):
    """What is measured; limits: of the client's table; change: what the limits are multiplied with half-way.

    longer: how many times longer it is counted, where requests are few.
    """

    name: str
    script: Script
    processes: tuple[int, ...] = PROCESSES
    limits: Limits | None = None
    change: float = 1.0
    longer: float = 1.0


_BY_REQUESTS = Script(limits={"requests": REQUESTS})
_BY_INPUT = Script(limits={"input_tokens": INPUT}, headers="anthropic")
_BY_OUTPUT = Script(limits={"output_tokens": OUTPUT}, headers="anthropic")

CASES = (
    Case(name="requests", script=_BY_REQUESTS),
    Case(name="requests, refused ones count", script=replace(_BY_REQUESTS, counts_refused=True), processes=(4,)),
    Case(name="requests, 60 a minute", script=Script(limits={"requests": 60}), processes=(4,), longer=2),
    Case(name="input", script=_BY_INPUT),
    Case(name="output", script=_BY_OUTPUT),
    Case(
        name="output, heavy tail",
        # What is reserved for those under way takes most of the bucket.
        script=replace(_BY_OUTPUT, most=2048, written=(60, 1.0), full=MINUTE),
    ),
    Case(
        name="all three",
        script=replace(_BY_OUTPUT, limits={"requests": REQUESTS, "input_tokens": INPUT, "output_tokens": OUTPUT}),
        processes=(4,),
    ),
    Case(name="requests, doubled", script=_BY_REQUESTS, change=2.0),
    Case(name="requests, halved", script=_BY_REQUESTS, change=0.5),
    Case(name="output, doubled", script=_BY_OUTPUT, change=2.0, processes=(4,)),
    Case(name="output, halved", script=_BY_OUTPUT, change=0.5, processes=(4,)),
    Case(
        name="requests, told by the table alone",
        script=replace(_BY_REQUESTS, headers="none"),
        limits=Limits(requests=REQUESTS),
        processes=(4,),
    ),
    Case(name="requests, only Retry-After", script=replace(_BY_REQUESTS, headers="retry-after"), processes=(4,)),
    Case(name="requests, nothing told", script=replace(_BY_REQUESTS, headers="none"), processes=(4,)),
    Case(name="output, nothing told", script=replace(_BY_OUTPUT, headers="none"), processes=(4,)),
)


def main(
    only: Annotated[list[str], typer.Option(help="Measure only the cases of this name.")] = [],  # noqa: B006
    processes: Annotated[list[int], typer.Option(help="Only with so many processes.")] = [],  # noqa: B006
    at_once: Annotated[int, typer.Option(min=1, help="How many cases are measured at the same time.")] = 3,
    seconds: Annotated[float, typer.Option(min=1, help="How long each case is counted.")] = 60.0,
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Measure each case with each number of processes; print what was used and refused."""
    measured = []
    wanted = [(case, number) for case in CASES if not only or case.name in only for number in case.processes]
    wanted = [(case, number) for case, number in wanted if not processes or number in processes]
    with own_servers() as settings:
        while wanted:
            group, wanted = wanted[:at_once], wanted[at_once:]
            measured += asyncio.run(measure_together(group, settings.broker, seconds))
            for row in measured[-len(group) :]:
                errors.print_json(data=row, indent=None)
    report = {
        "command": machine.command("benchmarks.limits"),
        "seconds": seconds,
        "warm_up_seconds": WARM_UP_SECONDS,
        "at_once": at_once,
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "load": [round(load, 1) for load in os.getloadavg()],
        "measured": measured,
        "machine": machine.describe(),
        "versions": machine.versions("redis", "httpx2"),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(measured)


async def measure_together(cases: Sequence[tuple[Case, int]], broker: str, seconds: float) -> list[dict[str, Any]]:
    """Several cases, which begin together, each with a server, an account and processes of its own."""
    started = asyncio.Barrier(len(cases))
    return await asyncio.gather(*(measure(case, number, broker, seconds, started) for case, number in cases))


async def measure(case: Case, processes: int, broker: str, seconds: float, started: asyncio.Barrier) -> dict[str, Any]:
    """One case: what was used of the limit that is used most, and the share of requests that was refused."""
    seconds *= case.longer
    account = Account(case.script)
    server = LimitedServer(account)
    order = Order(
        url=await server.start(),
        broker=broker,
        account=f"{case.name}/{processes}",
        steps=STEPS // processes,
        most=case.script.most,
        limits=case.limits,
    )
    clients = await asyncio.gather(*(_started(order) for _ in range(processes)))
    await started.wait()
    await asyncio.gather(*(_say(client, b"\n") for client in clients))
    await asyncio.sleep(WARM_UP_SECONDS)
    first, account.seen = account.seen, Seen()
    await asyncio.sleep(seconds / 2)
    account.change(case.change)
    await asyncio.sleep(seconds / 2)
    seen, account.seen = account.seen, Seen()
    await asyncio.gather(*map(_ended, clients))
    server.close()
    shares = seen.shares(case.script.limits, seconds * (1 + case.change) / 2)
    return {
        "case": case.name,
        "processes": processes,
        "used": round(max(shares.values()), 4),
        "refused": round(seen.refused_share, 4),
        "requests": seen.answered + seen.refused,
        "most_under_way": seen.most_under_way,
        "refused_before": first.refused,
    }


async def _started(order: Order) -> Process:
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.limits_client", stdin=PIPE, stdout=PIPE
    )
    await _say(client, msgspec.json.encode(order) + b"\n")
    if client.stdout is None or not await client.stdout.readline():
        raise RuntimeError("a client ended before it began")
    return client


async def _ended(client: Process) -> None:
    if client.stdin is not None:
        client.stdin.close()
    await client.wait()


async def _say(client: Process, line: bytes) -> None:
    if client.stdin is not None:
        client.stdin.write(line)
        await client.stdin.drain()


def _print(measured: list[dict[str, Any]]) -> None:
    table = Table("limit", "processes", "used", "refused", "requests", "most under way")
    for row in measured:
        used, refused = percent(row["used"]), percent(row["refused"], 2)
        table.add_row(
            row["case"], str(row["processes"]), used, refused, str(row["requests"]), str(row["most_under_way"])
        )
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
