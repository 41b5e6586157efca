"""Why answers of runs are wrong."""

from collections.abc import Callable, Iterable
from typing import Annotated

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import HERE, operation
from cotrail.services.runs.named_runs import find_run
from cotrail.services.store import reading
from cotrail.services.views.causes import check_questions, run_errors
from cotrail.services.views.run_errors import CheckedQuestion, RunErrors

Follow = Annotated[Callable[[Iterable[CheckedQuestion], int], Iterable[CheckedQuestion]], HERE]
"""Passes questions on as they are looked at, and knows how many there are."""


def unseen(checked: Iterable[CheckedQuestion], _: int) -> Iterable[CheckedQuestion]:
    """Passes the questions on."""
    return checked


@operation("GET", "/runs/{run}/errors", Scope.READ)
def show(run: str, follow: Follow = unseen) -> RunErrors:
    """Say why a run's wrong answers are wrong, by rules over what is recorded."""
    with reading() as connection:
        record = find_run(connection, run)
        return run_errors(record, follow(check_questions(connection, record), record.size))
