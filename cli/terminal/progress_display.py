"""A run's progress while workers carry it out, as bars and as lines."""

import time

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cotrail.common.humanize import count, duration, rate
from cotrail.common.printable_text import one_line
from cotrail.core.budgets import left
from cotrail.core.money import shown_dollars
from cotrail.services.runs.partial_scores import partial_line
from cotrail.services.runs.run_speed import Show, WatchedRun

LINE_SECONDS = 5.0
"""Interval between lines where the output is no terminal."""


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
    done = f"{progress.done:,} of {count(progress.questions, 'question')} done, {count(progress.steps, 'step')}"
    if budget := left(progress.budgets.run, progress.consumed):
        done += f", left: {budget}"
    if progress.spent:
        done += f", {shown_dollars(progress.spent)}"
    if not progress.open:
        return done
    if scores := partial_line(progress.scores):
        done += f", {scores}"
    return f"{done}. {watched.waits_for}" if watched.waits_for else f"{done}, {_pace(watched)}"


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
    money = f"; {shown_dollars(progress.spent)}" if progress.spent else ""
    budget = left(progress.budgets.run, progress.consumed)
    return Group(
        Text(progress.run, style="bold"),
        table,
        Text(f"{count(read, 'token')} read{share}, {progress.generated_tokens:,} written{money}", style="dim"),
        *([Text(f"Budget left: {budget}", style="dim")] if budget else []),
        *([Text(partial_line(progress.scores))] if progress.scores else []),
        Text(_pace(watched)),
        *([waiting] if waiting else []),
    )


def _bar(done: float, total: float | None) -> ProgressBar:
    return ProgressBar(total=max(total or 1, done, 1), completed=done if total else 0, width=40)
