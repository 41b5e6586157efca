"""Latency of a question by the number of retrieval workers, where searches are slow.

`python -m benchmarks.look_ups [--workers N]... [--output FILE]` starts its own PostgreSQL and Redis. Rethinking with
Retrieval answers one question at a time: ten chains of three facts, and a search of 100 ms for each of the thirty.
"""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.orchestration import MEASURED, measure
from benchmarks.servers import own_servers

WORKERS = (1, 2, 4, 8)


def main(
    workers: Annotated[list[int], typer.Option(help="How many retrieval workers, each of one thread.")] = [*WORKERS],  # noqa: B006
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Measure each number of workers in turn; print the seconds per question."""
    with own_servers() as settings:
        measured = [{"workers": n, **measure(settings, "rethinking", n, n)} for n in workers]
    report = {
        "command": machine.command("benchmarks.look_ups"),
        "measured": measured,
        "machine": machine.describe(),
        "versions": machine.versions(*MEASURED),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    table = Table("retrieval workers", "seconds a question", "one after another, its searches alone")
    for row in measured:
        alone = row["look_ups"] * row["look_up_seconds"]
        table.add_row(str(row["workers"]), f"{row['seconds']:.2f}", f"{alone:.2f}")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
