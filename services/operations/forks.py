"""Forks: new runs from what others have recorded."""

from collections.abc import Sequence

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs import forking
from cotrail.services.runs.forking import ForkedRun
from cotrail.services.runs.forking import ForkRequest as ForkRequest
from cotrail.services.store import open_store, reading
from cotrail.services.views.step_parts import StepParts, read_step_parts


def _forked_before(runs: Sequence[str]) -> ForkedRun:
    with reading() as connection:
        return forking.read_fork(connection, runs[0])


@operation("POST", "/runs/fork", Scope.SUBMIT, status=201, again=_forked_before)
def fork(request: ForkRequest) -> ForkedRun:
    """Start a new run that takes over recorded steps of another one and computes only what follows."""
    with open_store() as engine:
        return forking.fork(engine, request)


@operation("GET", "/runs/{run}/questions/{question}/steps/{step}/parts", Scope.READ)
def parts(run: str, question: str, step: int) -> StepParts:
    """Give what of a step a fork can edit, and with which model and settings the fork would go on."""
    with reading() as connection:
        return read_step_parts(connection, run, question, step)
