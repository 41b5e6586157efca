"""A run's scores with what judges say of it; of a judge's run, what it says itself."""

import msgspec
from sqlalchemy import Connection

from cotrail.models.queries.runs import read_run
from cotrail.services.views.run_scores import RunScores
from cotrail.services.views.run_verdicts import JudgeVerdicts, judge_verdicts, own_verdicts


class JudgedScores(RunScores, frozen=True, kw_only=True):
    """Scores of a run.

    judges: what each judge says of it; verdicts: what it says itself, where it is a judge's, which no metric scores.
    """

    judges: tuple[JudgeVerdicts, ...] = ()
    verdicts: JudgeVerdicts | None = None


def judged_scores(connection: Connection, scores: RunScores) -> JudgedScores:
    """The scores with the verdicts."""
    record = read_run(connection, scores.run)
    return JudgedScores(
        **msgspec.structs.asdict(scores),
        judges=judge_verdicts(connection, record),
        verdicts=own_verdicts(connection, record),
    )
