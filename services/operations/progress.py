"""How far runs are, read again and again by those who watch them, and why questions have no answer."""

from msgspec import Struct

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs import watching
from cotrail.services.runs.named_runs import resolve_run
from cotrail.services.runs.run_progress import Cause, read_reasons
from cotrail.services.runs.run_readings import RunReading, read_again
from cotrail.services.store import open_store
from cotrail.services.store import reading as reading_store


class Broker(Struct, frozen=True, kw_only=True):
    """Redis, which tells workers of steps; problem: why it doesn't answer, None where it does."""

    problem: str | None


@operation("GET", "/runs/{run}/progress", Scope.READ)
def reading(run: str) -> RunReading:
    """Read how far a run is: its questions and steps, what holds it back, and its scores so far."""
    with open_store() as engine, engine.connect() as connection:
        return read_again(connection, run)


@operation("GET", "/runs/{run}/reasons", Scope.READ)
def reasons(run: str) -> tuple[Cause, ...]:
    """Say why questions of a run failed or are blocked, the most frequent cause first."""
    with reading_store() as connection:
        return read_reasons(connection, resolve_run(connection, run))


@operation("GET", "/broker", Scope.READ)
def broker() -> Broker:
    """Say whether Redis answers, which tells workers of steps."""
    return Broker(problem=watching.broker_problem())
