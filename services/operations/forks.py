"""Forks: new runs from what others have recorded."""

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs import forking
from cotrail.services.runs.forking import ForkedRun, ForkRequest
from cotrail.services.store import open_store


@operation("POST", "/runs/fork", Scope.SUBMIT, status=201)
def fork(request: ForkRequest) -> ForkedRun:
    """Start a new run that takes over recorded steps of another one and computes only what follows."""
    with open_store() as engine:
        return forking.fork(engine, request)
