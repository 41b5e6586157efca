"""Replays of runs: whether the code still does what their record says."""

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.replaying import ReplayedRun, replay
from cotrail.services.store import reading


@operation("GET", "/runs/{run}/replay", Scope.READ)
def show(run: str) -> ReplayedRun:
    """Run the system's code over a run's recorded steps, and report where it diverges; nothing is changed."""
    with reading() as connection:
        return replay(connection, run)
