"""Model calls that are repeated after `kill -9`: cotrail, DBOS, LangGraph, and plain scripts.

`python -m benchmarks.after_a_kill [--questions N] [--kills K] [--calls 0.02,0.2] [--output FILE]` starts its own
PostgreSQL and Redis. Each way answers the questions of `benchmarks.workload` in a process group of its own, which is
killed K times, after fixed numbers of model calls, and started again by the same command. A call takes so many seconds
and is noted by the process that makes it (`benchmarks.model_calls`). DBOS and LangGraph are measured if they are
installed (`pip install dbos langgraph langgraph-checkpoint-postgres`).
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from benchmarks import machine, model_calls
from benchmarks.contenders import KINDS
from benchmarks.contenders.workers import PATIENCE_SECONDS, wait_until
from benchmarks.killed import AT_ONCE, FOLDER
from benchmarks.orchestration import MEASURED, own_database
from benchmarks.servers import own_servers

CALLS = sum(kind != "retrieve" for kind in KINDS)
"""Model calls that a question needs."""

LOOK_SECONDS = 0.001
"""Time between two looks at the number of calls."""


class Way(Struct, frozen=True):
    """A way to answer the questions: a module of `benchmarks.killed`, and how many questions or steps run at once."""

    module: str
    variant: str = ""
    at_once: int = AT_ONCE
    needs: str = "celery"

    @property
    def name(self) -> str:
        """Module and variant."""
        return f"{self.module} {self.variant}".strip()


WAYS = (
    Way("loop", "at-the-end", at_once=1),
    Way("loop", "each", at_once=1),
    Way("langgraph", "exit", needs="langgraph"),
    Way("langgraph", "async", needs="langgraph"),
    Way("langgraph", "sync", needs="langgraph"),
    Way("dbos", needs="dbos"),
    Way("cotrail"),
)

errors = Console(stderr=True)


class Measurement(Struct, frozen=True):
    """What a way's processes left.

    notes: of calls; ends: the bytes of these at each kill; answered: questions; seconds: with all restarts.
    """

    notes: bytes
    ends: list[int]
    answered: int
    seconds: float


def main(
    questions: Annotated[int, typer.Option(min=1, help="How many questions of four model calls each.")] = 40,
    kills: Annotated[int, typer.Option(min=1, help="How often each way is killed.")] = 5,
    calls: Annotated[str, typer.Option(help="Seconds that a model call takes, with commas.")] = "0.02,0.2",
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Kill each way in turn at the same numbers of calls; print what it repeats."""
    needed = questions * CALLS
    moments = [needed * number // (kills + 1) for number in range(1, kills + 1)]
    cases = [(way, each) for each in map(float, calls.split(",")) for way in WAYS if find_spec(way.needs)]
    rows = []
    with own_servers() as settings:
        for number, (way, seconds) in enumerate(cases):
            errors.print(f"{way.name}, {seconds} s a call", style="dim")
            with own_database(settings, f"killed_{number}") as environment, tempfile.TemporaryDirectory() as folder:
                slow = {**environment, model_calls.SECONDS: str(seconds)}
                found = _measured(way, questions, moments, slow, Path(folder))
            rows.append({"way": way.name, "at_once": way.at_once, "call_seconds": seconds, **_row(needed, found)})
    report = {
        "command": machine.command("benchmarks.after_a_kill"),
        "questions": questions,
        "killed_after_calls": moments,
        "measured": rows,
        "machine": machine.describe(),
        "versions": machine.versions("cotrail", *MEASURED),
    }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(rows)


def _measured(
    way: Way, questions: int, moments: list[int], environment: Mapping[str, str], folder: Path
) -> Measurement:
    notes = folder / "calls"
    # What killed processes leave in their temporary folder goes with this one.
    own = {**environment, FOLDER: str(folder), "TMPDIR": str(folder), model_calls.VARIABLE: str(notes)}
    began, ends = time.monotonic(), []
    for moment in moments:
        process = _started(way, questions, own)
        _wait_for(process, notes, moment)
        _kill(process)
        ends.append(notes.stat().st_size)
    process = _started(way, questions, own)
    told, _ = process.communicate(timeout=PATIENCE_SECONDS)
    if process.returncode:
        raise RuntimeError(f"{way.name} failed with exit code {process.returncode}")
    seconds, answered = time.monotonic() - began, json.loads(told.splitlines()[-1])["answered"]
    return Measurement(notes.read_bytes(), ends, answered, seconds)


def _started(way: Way, questions: int, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """The way in a process group of its own."""
    command = [sys.executable, "-m", f"benchmarks.killed.{way.module}", str(questions), *way.variant.split()]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )


def _wait_for(process: subprocess.Popen[str], notes: Path, moment: int) -> None:
    """Wait until so many calls have begun; RuntimeError if the process ends before."""
    while not notes.exists() or model_calls.begun(notes.read_bytes()) < moment:
        if process.poll() is not None:
            raise RuntimeError(f"it ended with exit code {process.returncode} before call {moment}")
        time.sleep(LOOK_SECONDS)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill the process group, and wait until none of it runs."""
    group = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not any(map(_is_running, group)))


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _row(needed: int, found: Measurement) -> dict[str, Any]:
    again = model_calls.repeated(found.notes, found.ends)
    return {
        "needed": needed,
        "made": model_calls.begun(found.notes),
        "repeated": sum(part.all for part in again),
        "repeated_though_answered": sum(part.answered for part in again),
        "repeated_after_each_kill": [part.all for part in again[:-1]],
        "repeated_though_answered_after_each_kill": [part.answered for part in again[:-1]],
        "repeated_after_the_last_start": again[-1].all,
        "calls_at_each_kill": [model_calls.begun(found.notes[:end]) for end in found.ends],
        "answered": found.answered,
        "all_answered": found.answered * CALLS == needed,
        "seconds": round(found.seconds, 1),
    }


def _print(rows: list[dict[str, Any]]) -> None:
    columns = ("", "a call", "at once", "needed", "made", "repeated", "answered before", "by kill", "answered", "took")
    table = Table(*columns)
    for row in rows:
        by_kill = " ".join(map(str, row["repeated_after_each_kill"]))
        keys = ("at_once", "needed", "made", "repeated", "repeated_though_answered")
        counts = [str(row[key]) for key in keys]
        answered = "all" if row["all_answered"] else f"{row['answered']}"
        table.add_row(row["way"], f"{row['call_seconds']} s", *counts, by_kill, answered, f"{row['seconds']:.0f} s")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
