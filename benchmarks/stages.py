"""Stages of a benchmark, each in a process of its own, so that the kernel reports the peak memory of each."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

ReportProgress = Callable[[int], None]
"""Callback that takes the number of paragraphs or queries done."""

StageWork = Callable[..., dict[str, Any]]
"""Work to measure: takes its arguments and `report`, and returns its results."""


class StageError(Exception):
    """A stage's process ended before its work was done; the message says how."""


def measured(stages: list[tuple[StageWork, tuple[Any, ...]]], report: ReportProgress) -> list[dict[str, Any]]:
    """Run the stages concurrently, each in a process of its own; adds seconds and peak memory to their results.

    StageError if a process fails or is killed; the others are ended then, too.
    """
    started = [_begun(stage, arguments) for stage, arguments in stages]
    try:
        return [_received(process, receiver, report) for process, receiver in started]
    except StageError:
        for process, _ in started:
            process.kill()
        raise
    finally:
        for process, _ in started:
            process.join()


def memory(field: str, process: int | str = "self") -> int:
    """A field of /proc/PID/status, in MiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (kibibytes,) = (line.split()[1] for line in lines if line.startswith(f"{field}:"))
    return int(kibibytes) // 1024


def bytes_of(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def screen() -> Iterator[Callable[[str, int], ReportProgress]]:
    """Show progress bars; yields a function that adds one."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:

        def shown(description: str, total: int) -> ReportProgress:
            task = bar.add_task(description, total=total)
            return lambda done: bar.update(task, completed=done)

        yield shown


def _begun(stage: StageWork, arguments: tuple[Any, ...]) -> tuple[BaseProcess, Connection]:
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, stage, arguments))
    process.start()
    sender.close()
    return process, receiver


def _work(sender: Connection, stage: StageWork, arguments: tuple[Any, ...]) -> None:
    started = time.perf_counter()
    found = stage(*arguments, report=sender.send)
    took = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time()}
    sender.send({**found, **{name: round(value, 1) for name, value in took.items()}, "peak_mib": memory("VmHWM")})


def _received(process: BaseProcess, receiver: Connection, report: ReportProgress) -> dict[str, Any]:
    try:
        while not isinstance(message := receiver.recv(), dict):
            report(message)
    except EOFError:
        process.join()
        code = process.exitcode or 0
        raise StageError(f"was killed by signal {-code}" if code < 0 else f"failed with exit code {code}") from None
    return message
