"""Following runs and questions while workers carry them out."""

from collections.abc import Iterable

from cotrail.services.access.actor import Scope
from cotrail.services.live.events import LiveEvent
from cotrail.services.live.following import follow_question, follow_run
from cotrail.services.operations.operation import operation
from cotrail.services.store import reading


@operation("GET", "/runs/{run}/events", Scope.READ, answers="events")
def run_events(run: str, after: str | None = None) -> Iterable[LiveEvent]:
    """Follow a run: what is recorded of it from the beginning, then what happens, until it ends.

    after: the id of the last event that was read, behind which to go on; a header `Last-Event-ID` goes before it.
    """
    with reading() as connection:
        return follow_run(connection, run, after)


@operation("GET", "/runs/{run}/questions/{question}/events", Scope.READ, answers="events")
def question_events(run: str, question: str, after: str | None = None) -> Iterable[LiveEvent]:
    """Follow one question of a run, by its id or its number from 1, until it ends or is blocked."""
    with reading() as connection:
        return follow_question(connection, run, question, after)
