"""What judges say of runs."""

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.store import reading
from cotrail.services.views.run_verdicts import RunVerdicts, find_verdicts


@operation("GET", "/runs/{run}/verdicts", Scope.READ)
def show(run: str, *, per_question: bool = False) -> RunVerdicts:
    """Show what judges say of a run: their verdicts, with means and intervals, and how far they agree.

    per_question: with the verdicts on each question.
    """
    with reading() as connection:
        return find_verdicts(connection, run, per_question=per_question)
