"""Comparisons of runs on the same questions."""

from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Meta

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import HERE, operation
from cotrail.services.store import reading
from cotrail.services.views.comparing import ComparisonRequest, compare
from cotrail.services.views.comparison import Comparison
from cotrail.services.views.outcome_matrix import Outcome
from cotrail.services.views.paired_questions import PairedQuestions, PairRequest, paired_questions
from cotrail.services.views.side_by_side import SideBySide, side_by_side

Limit = Annotated[int, Meta(ge=1, le=1000)]
Rows = Annotated[int, Meta(ge=1, le=200)]
Start = Annotated[int, Meta(ge=0)]

Tell = Annotated[Callable[[str], None], HERE]
"""Takes what is being done, in words."""


def _silent(_: str) -> None:
    """Tells nobody."""


@operation("GET", "/comparisons", Scope.READ)
def show(
    runs: Sequence[str], *, against: str | None = None, metrics: Sequence[str] = (), tell: Tell = _silent
) -> Comparison:
    """Say which of several runs on the same questions is better, by how much, how sure that is, where and why.

    against: one of them, with which alone the others are compared. metrics: the first one decides; the main scores that
    all runs have where none is named.
    """
    request = ComparisonRequest(runs=tuple(runs), against=against, metrics=tuple(metrics))
    with reading() as connection:
        return compare(connection, request, tell)


@operation("GET", "/comparisons/questions", Scope.READ)
def questions(
    first: str,
    second: str,
    *,
    metric: str = "",
    outcome: Outcome = "differ",
    limit: Limit = 100,
    after: str | None = None,
    around: str | None = None,
) -> PairedQuestions:
    """List the questions of two runs by who answered them right, and say how many there are of each outcome.

    metric: what decides; the first main score that both runs have where none is named. after: the question behind which
    the list begins; around: one whose neighbours in the whole list are told, by id.
    """
    request = PairRequest(
        first=first, second=second, metric=metric, outcome=outcome, limit=limit, after=after, around=around
    )
    with reading() as connection:
        return paired_questions(connection, request)


@operation("GET", "/comparisons/questions/{question}", Scope.READ)
def question(question: str, first: str, second: str, *, start: Start = 0, limit: Rows = 20) -> SideBySide:
    """Show two runs side by side on one question: their steps aligned, and what only one of them has.

    question: its id or, where none has it, its number in the first run, from 1. start: the row that is shown first.
    """
    with reading() as connection:
        return side_by_side(connection, (first, second), question, start=start, limit=limit)
