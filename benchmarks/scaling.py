"""Scaling of the throughput with the number of questions and of workers, and the memory of cotrail's processes.

`python -m benchmarks.scaling [--questions N]... [--workers N]... [--output FILE]` starts its own PostgreSQL and Redis.
The contenders are those of `benchmarks.orchestration`; each measurement has a database of its own. The output file is
rewritten after each measurement, since all of them together take half an hour.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.orchestration import MEASURED, PROCESSES, contenders, measure
from benchmarks.servers import own_servers

QUESTIONS = (1_000, 10_000, 100_000)
WORKERS = (1, 2, 4, 8)
QUESTIONS_FOR_WORKERS = 2_000

MOST = 10_000
"""Maximum number of questions for the other contenders: 100,000 would take them more than an hour."""

errors = Console(stderr=True)


def main(
    questions: Annotated[list[int], typer.Option(help="How many questions, once each with 2 workers.")] = [*QUESTIONS],  # noqa: B006
    workers: Annotated[list[int], typer.Option(help="How many workers, once each with 2,000 questions.")] = [*WORKERS],  # noqa: B006
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Measure each contender in each case in turn; print steps per second and the memory of cotrail's processes."""
    cases = [(count, PROCESSES) for count in questions] + [(QUESTIONS_FOR_WORKERS, count) for count in workers]
    measured: list[dict[str, Any]] = []
    with own_servers() as settings:
        for number, case in enumerate(cases):
            for name in contenders() if case[0] <= MOST else ["cotrail"]:
                errors.print(f"{name}: {case[0]:,} questions, {case[1]} workers", style="dim")
                measured.append(_row(name, case, measure(settings, name, number, *case)))
                if output is not None:
                    output.write_text(json.dumps(_report(measured), indent=2) + "\n")
    _print(measured)


def _row(name: str, case: tuple[int, int], done: dict[str, Any]) -> dict[str, Any]:
    questions, workers = case
    row: dict[str, Any] = {
        "contender": name,
        "questions": questions,
        "workers": workers,
        "steps_per_second": round(done["steps"] / done["seconds"], 1),
        "seconds": round(done["seconds"], 1),
    }
    if memory := done.get("memory_mib"):
        row["memory_mib"] = {"workers": memory[:-1], "maintenance": memory[-1]}
    return row


def _report(measured: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "command": machine.command("benchmarks.scaling"),
        "questions_for_workers": QUESTIONS_FOR_WORKERS,
        "measured": measured,
        "machine": machine.describe(),
        "versions": machine.versions(*MEASURED),
    }


def _print(measured: list[dict[str, Any]]) -> None:
    table = Table("", "questions", "workers", "steps a second", "memory of workers, MiB", "of maintenance, MiB")
    for row in measured:
        memory = row.get("memory_mib", {"workers": [], "maintenance": []})
        each = " ".join(str(worker[-1]) for worker in memory["workers"])
        speed = f"{row['steps_per_second']:.0f}"
        case = (f"{row['questions']:,}", str(row["workers"]))
        maintenance = "".join(map(str, memory["maintenance"][-1:]))
        table.add_row(row["contender"], *case, speed, each, maintenance)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
