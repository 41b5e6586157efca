"""Pace of runs: how many of their questions ended lately."""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection, exists, func, literal, literal_column, or_, select

from cotrail.models.schema.tables import questions, runs, steps

PACE_SECONDS = 600
"""The time over which it is measured."""


class Pace(Struct, frozen=True):
    """The number of a run's questions that ended lately, and the database's time."""

    questions: int
    now: datetime


def read_paces(connection: Connection, run_ids: Collection[str]) -> dict[str, Pace]:
    """Return the pace of each of these runs of which a question ended lately that it didn't take over whole."""
    since = func.now() - literal(PACE_SECONDS) * literal_column("interval '1 second'")
    own = exists().where(steps.c.question_id == questions.c.id, steps.c.adopted_from.is_(None))
    query = (
        select(questions.c.run_id, func.count(), func.now())
        .join_from(questions, runs, runs.c.id == questions.c.run_id)
        .where(questions.c.run_id.in_(run_ids), questions.c.finished_at > since, or_(runs.c.origin.is_(None), own))
    )
    return {row[0]: Pace(row[1], row[2]) for row in connection.execute(query.group_by(questions.c.run_id))}
