"""Minutes without a network: a process alone, or all together, cut off from a server, one way and both.

`python -m tests.chaos.partitions`; needs an account that may make network namespaces. There must be progress within
`LIMIT_SECONDS` while any healthy process is left, and within as much after the network is whole again.
"""

import sys
import threading
import time
from collections.abc import Callable
from typing import Annotated

import typer
from msgspec.structs import replace
from sqlalchemy import Engine

from benchmarks.contenders.cotrail import submission
from cotrail.core.questions import Question
from cotrail.models.commands.submission import submit
from cotrail.models.schema.database import connect
from cotrail.systems.registry import find_system
from tests.conftest import wait_until
from tests.faults.networked import Host, Network, allowed, network
from tests.faults.stacked import finished_steps

RUN = "partitioned"
QUESTIONS = 60_000
"""Questions of the run: more than the workers can finish."""

PROGRESS = 600
"""Steps that count as progress: more than the questions already begun have."""

LIMIT_SECONDS = 30.0

LOST = ("postgres", "to postgres", "from postgres", "redis")
WHO: dict[str, Callable[[Network], list[Host]]] = {
    "the leader": lambda net: [host for host in (net.leader(),) if host],
    "a standby": lambda net: [host for host in (net.hosts["first"], net.hosts["second"]) if host is not net.leader()],
    "a worker": lambda net: [net.hosts["near"]],
    "everybody": lambda net: list(net.hosts.values()),
}


def seconds_to_progress(engine: Engine) -> float | None:
    """Seconds until there is progress; None if it takes too long."""
    before, began = finished_steps(engine, RUN), time.monotonic()
    while (took := time.monotonic() - began) < LIMIT_SECONDS:
        if finished_steps(engine, RUN) > before + PROGRESS:
            return took
        threading.Event().wait(0.1)
    return None


def partition(net: Network, engine: Engine, who: str, lost: str, seconds: float) -> list[float | None]:
    """Cuts processes off for `seconds`; returns the time until there was progress meanwhile, and afterwards."""
    wait_until(net.leader, "a maintenance process leads")
    direction, _, server = lost.rpartition(" ")
    over = threading.Timer(seconds, lambda: None)
    for host in WHO[who](net):
        host.cut(server, there=direction != "from", back=direction != "to")
    over.start()
    took = [] if who == "everybody" else [seconds_to_progress(engine)]
    over.join()
    net.mend()
    return [*took, seconds_to_progress(engine)]


def main(seconds: Annotated[float, typer.Option(min=1, help="How long each lasts.")] = 60) -> None:
    """Carries out each partition, prints the time until there was progress, and exits with 1 if any was too long."""
    if not allowed():
        typer.echo("this account may not make network namespaces: no partition is tried")
        return
    late = 0
    with network() as net:
        engine = connect(net.settings.database)
        submit(
            engine,
            replace(submission(), id=RUN),
            [Question(id=f"q{n}", text=f"Who?{n}") for n in range(QUESTIONS)],
            find_system,
        )
        for who in WHO:
            for lost in LOST:
                took = partition(net, engine, who, lost, seconds)
                late += took.count(None)
                shown = ", ".join("late" if each is None else f"{each:.1f} s" for each in took)
                typer.echo(f"{who} without {lost} for {seconds:.0f} s: progress after {shown}")
        engine.dispose()
    sys.exit(1 if late else 0)


if __name__ == "__main__":
    typer.run(main)
