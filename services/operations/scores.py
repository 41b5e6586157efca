"""Scores of runs."""

from pathlib import Path

from cotrail.services.access.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.store import reading
from cotrail.services.views import scoring
from cotrail.services.views.judged_scores import JudgedScores, judged_scores


@operation("GET", "/runs/{run}/scores", Scope.READ)
def show(run: str, dataset: str | None = None, official: Path | None = None) -> JudgedScores:
    """Score a run as it stands, with 95 % confidence intervals; a question that isn't finished counts 0.

    dataset: of the questions, for a run on processed files that was submitted without naming it; official: that
    dataset's own file, which has all answers.
    """
    with reading() as connection:
        return judged_scores(connection, scoring.score(connection, run, dataset=dataset, official=official))
