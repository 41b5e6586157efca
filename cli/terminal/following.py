"""Live display of a run while workers carry it out: bars on a terminal, lines elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from sqlalchemy import Engine

from cotrail.cli.terminal.output import console
from cotrail.cli.terminal.progress_display import progress_bars, progress_lines
from cotrail.services.runs.run_progress import RunProgress
from cotrail.services.runs.run_speed import Show, WatchedRun
from cotrail.services.runs.watching import watch


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
