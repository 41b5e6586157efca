"""Live display of an experiment: bars on a terminal, lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from cotrail.common.humanize import count
from cotrail.services.runs.experiments import ExperimentProgress

LINE_SECONDS = 10.0
"""Interval between lines where the output is no terminal."""


@contextmanager
def display(screen: Console) -> Iterator[Callable[[ExperimentProgress], None]]:
    """Bars on a terminal; elsewhere a line at intervals."""
    if not screen.is_terminal:
        yield _lines(screen)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), TextColumn("{task.fields[note]}"), console=screen) as bars:
        runs = bars.add_task("Runs", total=None, note="")
        questions = bars.add_task("Questions", total=None, note="")

        def show(progress: ExperimentProgress) -> None:
            bars.update(runs, completed=progress.done, total=progress.planned)
            note = f"{count(progress.steps, 'step')}, {progress.adopted:,} of them adopted"
            bars.update(questions, completed=progress.answered, total=progress.questions, note=note)

        yield show


def _lines(screen: Console) -> Callable[[ExperimentProgress], None]:
    printed, last = -LINE_SECONDS, ""

    def show(progress: ExperimentProgress) -> None:
        nonlocal printed, last
        now = time.monotonic()
        if not progress.over and now - printed < LINE_SECONDS:
            return
        printed, line = now, describe(progress)
        if line != last:
            screen.print(line, soft_wrap=True)
        last = line

    return show


def describe(progress: ExperimentProgress) -> str:
    """e.g. `12 of 36 runs done, 240 of 400 questions, 3,012 steps (1,400 adopted)`."""
    return (
        f"{progress.done} of {count(progress.planned, 'run')} done, {progress.answered:,} of "
        f"{count(progress.questions, 'question')} in those begun, {count(progress.steps, 'step')} "
        f"({progress.adopted:,} adopted)"
    )
