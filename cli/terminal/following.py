"""Live display of a run while workers carry it out: bars on a terminal, lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from sqlalchemy import Engine

from cotrail.cli.terminal.output import console
from cotrail.cli.terminal.run_text import unwatched_line
from cotrail.common.humanize import count, duration, rate
from cotrail.common.printable_text import one_line
from cotrail.services.runs.run_progress import RunProgress
from cotrail.services.runs.run_speed import WatchedRun
from cotrail.services.runs.watching import Show, watch

LINE_SECONDS = 5.0
"""Interval between lines where the output is no terminal."""


def follow(engine: Engine, run: str, *, stderr: bool = False) -> RunProgress:
    """Shows a run's progress until no question is open or one cause blocks it; returns the last that was read."""
    screen = console(stderr=stderr)
    state = "running"

    def show(watched: WatchedRun) -> None:
        nonlocal state
        state = watched.progress.state if watched.progress else state
        draw(watched)

    try:
        with _display(screen) as draw:
            return watch(engine, run, show)
    except KeyboardInterrupt:
        screen.print(unwatched_line(run, state), soft_wrap=True)
        raise


@contextmanager
def _display(screen: Console) -> Iterator[Show]:
    """Bars on a terminal; elsewhere a line at intervals."""
    if not screen.is_terminal:
        yield progress_lines(screen)
        return
    # Refreshed by hand, since only a new reading changes anything.
    with Live(console=screen, auto_refresh=False, transient=True) as live:
        yield lambda watched: live.update(progress_bars(watched), refresh=True)


def progress_lines(screen: Console) -> Show:
    """A line at intervals."""
    printed, last = -LINE_SECONDS, ""

    def show(watched: WatchedRun) -> None:
        nonlocal printed, last
        now = time.monotonic()
        if (watched.progress is None or watched.progress.open) and now - printed < LINE_SECONDS:
            return
        printed, line = now, _line(watched)
        if line != last:
            screen.print(line, soft_wrap=True)
        last = line

    return show


def _line(watched: WatchedRun) -> str:
    progress = watched.progress
    if progress is None:
        return watched.waits_for or ""
    counts = f"{progress.done:,} of {count(progress.questions, 'question')} done, {count(progress.steps, 'step')}"
    if not progress.open:
        return counts
    return f"{counts}. {watched.waits_for}" if watched.waits_for else f"{counts}, {_pace(watched)}"


def _pace(watched: WatchedRun) -> str:
    left = watched.seconds_left
    return f"{rate(watched.rate)} steps/s" + ("" if left is None else f", about {duration(left)} left")


def progress_bars(watched: WatchedRun) -> RenderableType:
    """A bar of the questions and one of the steps, tokens, speed, and what holds the run back."""
    waiting = Text(one_line(watched.waits_for or ""), style="yellow")
    progress, steps = watched.progress, watched.expected_steps
    if progress is None:
        return waiting
    table = Table.grid(padding=(0, 2))
    table.add_row("Questions", _bar(progress.done, progress.questions), f"{progress.done:,} of {progress.questions:,}")
    open_end = steps is not None and progress.done < progress.questions
    about = f" of about {max(round(steps or 0), progress.steps):,}" if open_end else ""
    table.add_row("Steps", _bar(progress.steps, steps), f"{progress.steps:,}{about}")
    read, cached = progress.prompt_tokens, progress.cached_prompt_tokens
    share = f" ({cached / read:.0%} from the cache)" if read else ""
    return Group(
        Text(progress.run, style="bold"),
        table,
        Text(f"{count(read, 'token')} read{share}, {progress.generated_tokens:,} written", style="dim"),
        Text(_pace(watched)),
        *([waiting] if waiting else []),
    )


def _bar(done: float, total: float | None) -> ProgressBar:
    return ProgressBar(total=max(total or 1, done, 1), completed=done if total else 0, width=40)
