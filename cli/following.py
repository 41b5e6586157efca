"""Live display of a run while workers carry it out: bars on a terminal, lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from cotrail.cli.meanwhile import meanwhile
from cotrail.cli.output import console
from cotrail.cli.run_speed import RunSpeed, expected_steps
from cotrail.cli.run_text import unwatched_line
from cotrail.common.humanize import count, duration, rate
from cotrail.common.printable_text import one_line
from cotrail.configuration.settings import settings
from cotrail.models.queries.progress import Progress, read_progress
from cotrail.models.schema.database import reason_of, unanswered

POLL_SECONDS = 0.5
LONGEST_PAUSE = 5.0
"""The longest pause between two reads, however slow they are."""

SLOW_SECONDS = 2.0
"""A read that takes longer is shown as slow, and again after each such interval."""

LINE_SECONDS = 5.0
"""Interval between lines where the output is no terminal."""

LOST_SECONDS = 1.0
"""Pause before a database that doesn't answer is asked again."""

Show = Callable[[Progress | None, RunSpeed], None]
"""Shows a run's progress, which is None before the first read is done."""


def follow(engine: Engine, run: str, *, stderr: bool = False) -> Progress:
    """Shows a run's progress until no question is open or one cause blocks it; returns the last that was read."""
    screen = console(stderr=stderr)
    speed = RunSpeed(broker_problem)
    try:
        with _display(screen) as show:
            return follow_with(show, engine, run, speed)
    except KeyboardInterrupt:
        screen.print(unwatched_line(run, speed.progress.state if speed.progress else "running"), soft_wrap=True)
        raise


def follow_with(show: Show, engine: Engine, run: str, speed: RunSpeed) -> Progress:
    """The same, shown by `show` alone."""
    for progress in _read_repeatedly(engine, run, speed, show):
        show(progress, speed)
        if not progress.open or progress.stopped:
            break
    return progress


def pause_after(seconds: float) -> float:
    """The pause after a read of that duration: backpressure, as large runs are slow to read, up to a bound."""
    return min(max(POLL_SECONDS, 10 * seconds), LONGEST_PAUSE)


def broker_problem() -> str | None:
    """Why Redis doesn't answer; None where it does."""
    from cotrail.tasks import routing  # slow: it imports Celery

    problem = routing.broker_problem(settings().broker)
    return None if problem is None else settings().secrets.hidden(problem)


def _read_repeatedly(engine: Engine, run: str, speed: "RunSpeed", show: "Show") -> Iterator[Progress]:
    """The run's progress at each read; while the database doesn't answer, the last that is known."""
    progress = None

    def show_slow(seconds: float) -> None:
        speed.reading_seconds = seconds
        show(progress, speed)

    while True:
        started = time.monotonic()
        try:
            with meanwhile(show_slow, SLOW_SECONDS), engine.connect() as connection:
                progress = read_progress(connection, run)
            speed.note(progress, started)
        except SQLAlchemyError as error:
            # Only a run that was seen before is waited for: at the start, an unreachable database is an error.
            if progress is None or not unanswered(error):
                raise
            speed.lost, speed.reading_seconds = reason_of(error), 0.0
        yield progress
        time.sleep(LOST_SECONDS if speed.lost else pause_after(time.monotonic() - started))


@contextmanager
def _display(screen: Console) -> Iterator[Show]:
    """Bars on a terminal; elsewhere a line at intervals."""
    if not screen.is_terminal:
        yield progress_lines(screen)
        return
    # Refreshed by hand, since only a new reading changes anything.
    with Live(console=screen, auto_refresh=False, transient=True) as live:
        yield lambda progress, speed: live.update(progress_bars(progress, speed), refresh=True)


def progress_lines(screen: Console) -> Show:
    """A line at intervals."""
    printed, last = -LINE_SECONDS, ""

    def show(progress: Progress | None, speed: RunSpeed) -> None:
        nonlocal printed, last
        now = time.monotonic()
        if (progress is None or progress.open) and now - printed < LINE_SECONDS:
            return
        printed, line = now, _line(progress, speed)
        if line != last:
            screen.print(line, soft_wrap=True)
        last = line

    return show


def _line(progress: Progress | None, speed: RunSpeed) -> str:
    if progress is None:
        return speed.slowness
    done = f"{progress.done:,} of {count(progress.total, 'question')} done, {count(progress.steps, 'step')}"
    if not progress.open:
        return done
    if waiting := speed.waits_for(progress):
        return f"{done}. {waiting}"
    return f"{done}, {_pace(progress, speed)}"


def _pace(progress: Progress, speed: RunSpeed) -> str:
    left = speed.left(progress)
    return f"{rate(speed.rate)} steps/s" + ("" if left is None else f", about {duration(left)} left")


def progress_bars(progress: Progress | None, speed: RunSpeed) -> RenderableType:
    """A bar of the questions and one of the steps, tokens, speed, and what holds the run back."""
    if progress is None:
        return Text(speed.slowness, style="yellow")
    steps = expected_steps(progress)
    table = Table.grid(padding=(0, 2))
    table.add_row("Questions", _bar(progress.done, progress.total), f"{progress.done:,} of {progress.total:,}")
    open_end = steps is not None and progress.done < progress.total
    about = f" of about {max(round(steps or 0), progress.steps):,}" if open_end else ""
    table.add_row("Steps", _bar(progress.steps, steps), f"{progress.steps:,}{about}")
    read, cached, written = (
        progress.tokens(name) for name in ("prompt_tokens", "cached_prompt_tokens", "generated_tokens")
    )
    share = f" ({cached / read:.0%} from the cache)" if read else ""
    lines: list[RenderableType] = [
        Text(progress.run, style="bold"),
        table,
        Text(f"{count(read, 'token')} read{share}, {written:,} written", style="dim"),
        Text(_pace(progress, speed)),
    ]
    if waiting := speed.waits_for(progress):
        lines.append(Text(one_line(waiting), style="yellow"))
    return Group(*lines)


def _bar(done: float, total: float | None) -> ProgressBar:
    return ProgressBar(total=max(total or 1, done, 1), completed=done if total else 0, width=40)
