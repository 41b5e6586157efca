"""Verdicts as a run's page shows them: what judges say of the run, or what it says itself."""

from collections.abc import Mapping

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.models.queries.runs import RunRecord
from cotrail.services.views.run_verdicts import (
    MEANS,
    NO_VERDICTS,
    Agreement,
    JudgeVerdicts,
    Verdict,
    own_verdicts,
    run_verdicts,
)

OWN_UNSCORED = "This run judges answers of others: its own are verdicts, which no metric scores."
OWN_MEANS = "The mean is over the answers with a verdict."


class ReportedVerdicts(Struct, frozen=True, kw_only=True):
    """Judges of a run, or the run itself if it judges; questions: verdicts by the ids of questions.

    note: how means are taken; unscored: why no metric scores the run; empty where that isn't since it judges.
    """

    judges: tuple[JudgeVerdicts, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    questions: Mapping[str, tuple[Verdict, ...]] = NO_VERDICTS
    note: str = MEANS
    unscored: str = ""


def reported_verdicts(connection: Connection, record: RunRecord) -> ReportedVerdicts:
    """The verdicts on a run, or its own."""
    if own := own_verdicts(connection, record):
        return ReportedVerdicts(judges=(own,), note=OWN_MEANS, unscored=OWN_UNSCORED)
    found = run_verdicts(connection, record, per_question=True)
    return ReportedVerdicts(
        judges=found.judges,
        agreements=found.agreements,
        questions={each.question: each.verdicts for each in found.per_question if each.verdicts},
    )
