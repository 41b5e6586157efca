"""How cotrail's steps a second change with the number of questions and of workers; and the memory of each process.

`python -m benchmarks.scaling [--questions N]... [--workers N]... [--output FILE]` brings its own PostgreSQL and Redis.
Each measurement has a database of its own; searches and models cost nothing, as in `benchmarks.orchestration`.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.orchestration import MEASURED, measure
from benchmarks.servers import own_servers
from tasks.settings import Settings

QUESTIONS = (1_000, 10_000, 100_000)
WORKERS = (1, 2, 4, 8)
QUESTIONS_FOR_WORKERS = 2_000

errors = Console(stderr=True)


def main(
    questions: Annotated[list[int], typer.Option(help="How many questions, once each with 2 workers.")] = [*QUESTIONS],  # noqa: B006
    workers: Annotated[list[int], typer.Option(help="How many workers, once each with 2,000 questions.")] = [*WORKERS],  # noqa: B006
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Measures each in turn and prints steps a second and the memory of the workers and of maintenance."""
    cases = [(count, 2) for count in questions] + [(QUESTIONS_FOR_WORKERS, count) for count in workers]
    with own_servers() as settings:
        measured = [_row(settings, number, *case) for number, case in enumerate(cases)]
    report = {
        "command": machine.command("benchmarks.scaling"),
        "questions_for_workers": QUESTIONS_FOR_WORKERS,
        "measured": measured,
        "machine": machine.describe(),
        "versions": machine.versions(*MEASURED),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(measured)


def _row(settings: Settings, number: int, questions: int, workers: int) -> dict[str, Any]:
    errors.print(f"{questions:,} questions, {workers} workers", style="dim")
    done = measure(settings, "cotrail", number, questions, workers)
    return {
        "questions": questions,
        "workers": workers,
        "steps_per_second": round(done["steps"] / done["seconds"], 1),
        "seconds": round(done["seconds"], 1),
        "memory_mib": {"workers": done["memory_mib"][:-1], "maintenance": done["memory_mib"][-1]},
    }


def _print(measured: list[dict[str, Any]]) -> None:
    table = Table("questions", "workers", "steps a second", "memory of workers, MiB", "of maintenance, MiB")
    for row in measured:
        memory = row["memory_mib"]
        each = " ".join(map(str, memory["workers"]))
        speed = f"{row['steps_per_second']:.0f}"
        table.add_row(f"{row['questions']:,}", str(row["workers"]), speed, each, str(memory["maintenance"]))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
