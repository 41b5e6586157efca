"""Comparisons of runs on the same questions."""

from collections.abc import Callable, Sequence
from typing import Annotated

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import HERE, operation
from cotrail.services.store import reading
from cotrail.services.views.comparing import ComparisonRequest, compare
from cotrail.services.views.comparison import Comparison

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
