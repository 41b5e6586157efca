"""What the local stack costs while nothing is asked of it: memory and processor time of each process.

`python -m benchmarks.at_rest [--seconds N] [--output FILE]` starts a stack of its own, waits until it is quiet, and
measures for `--seconds`. Memory is the proportional set size: pages that processes share count once in sum. The
generation worker has no model loaded, as with one behind a server: its model is a script.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from benchmarks import machine

SETTLING_SECONDS = 30.0
"""How long after its start a stack is left alone."""


def main(
    *,
    seconds: Annotated[float, typer.Option(min=1, help="How long is measured.")] = 60.0,
    output: Annotated[Path | None, typer.Option(help="Write the JSON object into this file as well.")] = None,
) -> None:
    """Measure a stack at rest."""
    with tempfile.TemporaryDirectory(prefix="car-") as home:
        Path(home, "script.json").write_text('{"name": "writer", "questions": {}, "default": {"answer": "A"}}')
        Path(home, "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
        environment = {**os.environ, "COTRAIL_HOME": home, "COTRAIL_MODEL": "scripted"}
        command = [sys.executable, "-m", "cotrail.cli.main"]
        subprocess.run([*command, "up"], env=environment, check=True, stdout=subprocess.DEVNULL)
        try:
            listed = json.loads(
                subprocess.run(
                    [*command, "stack", "--json"], env=environment, check=True, stdout=subprocess.PIPE
                ).stdout
            )["services"]
            time.sleep(SETTLING_SECONDS)
            processes = {each["name"]: _family(each["pid"]) for each in listed if each["pid"]}
            before = {name: sum(map(_worked, family)) for name, family in processes.items()}
            time.sleep(seconds)
            measured = {name: _measured(family, before[name], seconds) for name, family in processes.items()}
        finally:
            subprocess.run([*command, "down"], env=environment, check=True, stdout=subprocess.DEVNULL)
    report = _report(measured, seconds)
    print(json.dumps(report, indent=2))
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")


def _family(pid: int) -> list[psutil.Process]:
    """A process with its children, as PostgreSQL has some; a supervisor's are processes of their own in the list."""
    process = psutil.Process(pid)
    own = "supervisor" in " ".join(process.cmdline())
    return [process, *([] if own else process.children(recursive=True))]


def _worked(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _measured(family: list[psutil.Process], before: float, seconds: float) -> dict[str, float]:
    return {
        "mebibytes": round(sum(each.memory_full_info().pss for each in family) / 2**20, 1),
        "percent_of_a_core": round((sum(map(_worked, family)) - before) / seconds * 100, 2),
    }


def _report(measured: dict[str, dict[str, float]], seconds: float) -> dict[str, Any]:
    return {
        "command": machine.command("benchmarks.at_rest"),
        "seconds": seconds,
        "processes": measured,
        "in_all": {key: round(sum(each[key] for each in measured.values()), 1) for key in measured["redis"]},
        "machine": machine.describe(),
        "versions": machine.versions("cotrail", "celery", "SQLAlchemy"),
    }


if __name__ == "__main__":
    typer.run(main)
