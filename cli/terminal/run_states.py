"""States of runs on a terminal."""

from rich.text import Text

from cotrail.services.runs.run_progress import RunState

STYLES = {
    RunState.RUNNING: "cyan",
    RunState.PAUSED: "yellow",
    RunState.BLOCKED: "bold red",
    RunState.FINISHED: "green",
    RunState.CANCELLED: "dim",
    RunState.PRUNED: "dim",
}
"""The colours of runs' states on a terminal."""


def shown_state(state: RunState) -> Text:
    """A run's state in its colour."""
    return Text(state, style=STYLES[state])
