"""Throughput of pure orchestration in steps per second: cotrail, a bare Celery chain, DBOS and LangGraph.

`python -m benchmarks.orchestration [--questions N] [--json] [--output FILE]` starts its own PostgreSQL and Redis.
The bare chain stores nothing and is the upper bound; the others store every step before the next. DBOS and LangGraph
are measured if they are installed (`pip install dbos langgraph langgraph-checkpoint-postgres`).
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from benchmarks import machine
from benchmarks.servers import own_servers
from cotrail.configuration.settings import Settings

NEEDS = {"celery": "celery", "cotrail": "celery", "dbos": "dbos", "langgraph": "langgraph"}
"""The package that each contender needs."""

MEASURED = ("celery", "dbos", "langgraph", "langgraph-checkpoint-postgres", "redis", "kombu", "psycopg", "SQLAlchemy")

PROCESSES = 2
"""Worker processes of each contender."""

errors = Console(stderr=True)


def main(
    questions: Annotated[int, typer.Option(min=1, help="How many questions of seven steps each.")] = 2500,
    rounds: Annotated[int, typer.Option(min=1, help="How often each is measured; the median counts.")] = 5,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the JSON object into this file as well.")] = None,
) -> None:
    """Measure every contender in turn, `rounds` times; print steps per second and the ratios."""
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders()}
    with own_servers() as settings:
        for number in range(rounds):
            for name in measured:
                errors.print(f"round {number + 1} of {rounds}: {name}", style="dim")
                measured[name].append(measure(settings, name, number, questions, PROCESSES))
    report = _report(measured, questions)
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(report) if not as_json else print(json.dumps(report))


def contenders() -> list[str]:
    """The contenders whose packages are installed."""
    return [name for name, package in NEEDS.items() if find_spec(package)]


def measure(settings: Settings, name: str, number: int, *arguments: int) -> dict[str, Any]:
    """Run a contender in a database of its own; returns its output."""
    command = [sys.executable, "-m", f"benchmarks.contenders.{name}", *map(str, arguments)]
    with own_database(settings, f"{name}_{number}") as environment:
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@contextmanager
def own_database(settings: Settings, name: str) -> Iterator[dict[str, str]]:
    """The environment of a contender with a database of its own, which is dropped before the next one begins."""
    url = make_url(settings.database)
    engine = create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    own = url.set(drivername="postgresql", database=name).render_as_string(hide_password=False)
    yield {
        **os.environ,
        "COTRAIL_HOME": str(settings.home),
        "COTRAIL_DATABASE_URL": own,
        "COTRAIL_BROKER_URL": settings.broker,
    }
    with engine.connect() as connection:
        connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
        connection.execute(text("CHECKPOINT"))
    engine.dispose()


def _report(measured: dict[str, list[dict[str, Any]]], questions: int) -> dict[str, Any]:
    speeds = {name: sorted(run["steps"] / run["seconds"] for run in runs) for name, runs in measured.items()}
    medians = {name: speed[len(speed) // 2] for name, speed in speeds.items()}
    return {
        "command": machine.command("benchmarks.orchestration"),
        "questions": questions,
        "steps_per_second": {name: round(speed, 1) for name, speed in medians.items()},
        "all": {name: [round(speed, 1) for speed in speed_list] for name, speed_list in speeds.items()},
        "ratios": {f"cotrail/{name}": round(medians["cotrail"] / speed, 2) for name, speed in medians.items()},
        "workers": {name: runs[0]["workers"] for name, runs in measured.items()},
        "machine": machine.describe(),
        "versions": machine.versions(*MEASURED),
    }


def _print(report: dict[str, Any]) -> None:
    title = "Orchestration alone: seven steps a question"
    table = Table("", "steps a second", "cotrail against it", "processes", title=title)
    for name, speed in sorted(report["steps_per_second"].items(), key=lambda item: -item[1]):
        ratio = report["ratios"][f"cotrail/{name}"]
        table.add_row(name, f"{speed:.0f}", f"{ratio:.2f} times", report["workers"][name])
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
