"""Live display of a run while workers carry it out: bars on a terminal, lines elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live

from cotrail.cli.terminal.output import console
from cotrail.cli.terminal.progress_display import progress_bars, progress_lines
from cotrail.errors import UnavailableError
from cotrail.services.operations import progress
from cotrail.services.runs.run_progress import RunProgress
from cotrail.services.runs.run_speed import Show, WatchedRun
from cotrail.services.runs.watching import watch


def follow(run: str, *, stderr: bool = False) -> RunProgress:
    """Shows a run's progress until no question is open or one cause blocks it; returns the last that was read.

    run: its id, the beginning of it, its name, or `latest`.
    """
    screen = console(stderr=stderr)
    state = "running"

    def show(watched: WatchedRun) -> None:
        nonlocal run, state
        if watched.progress:
            run, state = watched.progress.run, watched.progress.state
        draw(watched)

    try:
        with _display(screen) as draw:
            return watch(run, progress.reading, show, _broker_problem)
    except KeyboardInterrupt:
        screen.print(unwatched_line(run, state), soft_wrap=True)
        raise


def _broker_problem() -> str | None:
    try:
        return progress.broker().problem
    except UnavailableError:
        return None  # the next reading says so


def unwatched_line(run: str, state: str) -> str:
    """What becomes of a run that isn't watched any more."""
    following = {
        "running": f"The run continues. `cotrail watch {run}` shows it again.",
        "paused": f"The run stays paused. `cotrail resume {run}` continues it.",
        "blocked": f"The run stays blocked. Once the reason is fixed, `cotrail resume {run}` continues it.",
    }
    return following.get(state, f"The run is {state}. `cotrail show {run}` shows it.")


@contextmanager
def _display(screen: Console) -> Iterator[Show]:
    """Bars on a terminal; elsewhere a line at intervals."""
    if not screen.is_terminal:
        yield progress_lines(screen)
        return
    # Refreshed by hand, since only a new reading changes anything.
    with Live(console=screen, auto_refresh=False, transient=True) as live:
        yield lambda watched: live.update(progress_bars(watched), refresh=True)
