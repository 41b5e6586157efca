"""Removal of runs."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from cotrail.common.numbers import MOST_DAYS
from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import HERE, operation
from cotrail.services.runs import pruning
from cotrail.services.runs.pruning import Pruned, PrunedRuns
from cotrail.services.runs.pruning import Report as _Report
from cotrail.services.store import open_store, reading

Report = Annotated[_Report, HERE]

Days = Annotated[float, Meta(ge=0, le=MOST_DAYS)]


def _silent(_: Pruned) -> None:
    """Reports nothing."""


@operation("GET", "/prunable", Scope.READ)
def choose(runs: Sequence[str] = (), older_than: Days | None = None) -> PrunedRuns:
    """Say which runs would be removed, first those whose removal was interrupted, and how large they are.

    older_than: takes all that ended at least this many days ago too.
    """
    with reading() as connection:
        return pruning.choose(connection, runs, older_than)


@operation("POST", "/prune", Scope.OPERATE)
def prune(runs: Sequence[str], report: Report = _silent) -> Pruned:
    """Remove runs permanently: their questions, steps and attempts, and paragraphs that no other run refers to.

    A run that hasn't ended is refused: cancel it first. Those that aren't there any more are left out, so that the same
    request completes a removal that was interrupted.
    """
    with open_store() as engine:
        return pruning.prune(engine, runs, report)
