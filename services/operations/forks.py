"""Forks: new runs from what others have recorded."""

from collections.abc import Sequence

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs import forking
from cotrail.services.runs.forking import ForkedRun
from cotrail.services.runs.forking import ForkRequest as ForkRequest
from cotrail.services.store import open_store, reading


def _forked_before(runs: Sequence[str]) -> ForkedRun:
    with reading() as connection:
        return forking.read_fork(connection, runs[0])


@operation("POST", "/runs/fork", Scope.SUBMIT, status=201, again=_forked_before)
def fork(request: ForkRequest) -> ForkedRun:
    """Start a new run that takes over recorded steps of another one and computes only what follows."""
    with open_store() as engine:
        return forking.fork(engine, request)
