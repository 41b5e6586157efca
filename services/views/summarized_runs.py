"""How runs stand, for lists of them: scores, speed, the time left, what they took, and who asked for them.

All of it is read by an index, or stands with the run; scores that have to be computed first come when they are there.
"""

import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Engine

from cotrail.models.queries.activities import makers_of
from cotrail.models.queries.pace import PACE_SECONDS, Pace, read_paces
from cotrail.models.queries.question_summaries import read_summarized
from cotrail.models.queries.runs import RunSummary, summaries_of
from cotrail.models.schema.states import QuestionStatus, RunState
from cotrail.services.runs.run_readings import scores_so_far
from cotrail.services.views.mean_score import MeanScore, partial_means
from cotrail.services.views.summarizing import for_seconds, summarize
from cotrail.services.views.summary_counts import SMALL, SummaryCounts, counts_in, ended, is_due

COMPUTING_SECONDS = 0.3
"""How long scores of a list of runs may be computed, not counting the last run."""


class RunStanding(Struct, frozen=True, kw_only=True):
    """How a run stands.

    scores: its main metrics; of a run that goes on, over its first questions.
    rate: questions that ended in a second, over the last ten minutes; seconds_left: what the open ones take at that
        rate. Both are None where nothing goes on, or nothing has ended yet.
    counts: of its summarized questions, and what they took.
    asked_by: who submitted it through the service; empty where nobody did.
    """

    run: str
    scores: tuple[MeanScore, ...]
    rate: float | None
    seconds_left: float | None
    counts: SummaryCounts
    asked_by: str

    @property
    def dollars(self) -> Decimal | None:
        """What its ended questions cost; None where its models have no price."""
        return self.counts.cost


def read_standings(engine: Engine, run_ids: Sequence[str]) -> tuple[RunStanding, ...]:
    """How these runs stand, in their order; raises UnknownNameError."""
    with engine.connect() as connection:
        found = {each.run.id: each for each in summaries_of(connection, run_ids)}
    return standings_of(engine, [found[each] for each in run_ids])


def standings_of(engine: Engine, summaries: Sequence[RunSummary]) -> tuple[RunStanding, ...]:
    """How these runs stand, in their order."""
    with engine.connect() as connection:
        due = [each for each in summaries if ended(each) <= SMALL and is_due(connection, each)]
    goes = for_seconds(COMPUTING_SECONDS)
    for each in due:
        if goes():
            summarize(engine, each.run.id, goes)
    with engine.connect() as connection:
        return tuple(_standings(connection, summaries))


def _standings(connection: Connection, summaries: Sequence[RunSummary]) -> Iterator[RunStanding]:
    ids = [each.run.id for each in summaries]
    rows, paces, actors = read_summarized(connection, ids), read_paces(connection, ids), makers_of(connection, ids)
    until = time.monotonic() + COMPUTING_SECONDS
    for each in summaries:
        row: Any = rows.get(each.run.id)
        rate = _rate(each, paces.get(each.run.id))
        scores: tuple[MeanScore, ...] = ()
        if row and row["complete"]:
            scores = tuple(msgspec.convert(list(row["scores"].values()), list[MeanScore]))
        elif time.monotonic() < until:
            scores = partial_means(scores_so_far(connection, each.run))
        yield RunStanding(
            run=each.run.id,
            scores=scores,
            rate=rate,
            seconds_left=each.questions[QuestionStatus.OPEN] / rate if rate else None,
            counts=counts_in(row),
            asked_by=actors.get(each.run.id, ""),
        )


def _rate(summary: RunSummary, pace: Pace | None) -> float | None:
    if pace is None or summary.state != RunState.RUNNING:
        return None
    return pace.questions / max(min(PACE_SECONDS, (pace.now - summary.run.created_at).total_seconds()), 1.0)
