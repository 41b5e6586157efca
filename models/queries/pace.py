"""Pace of runs: how many of their questions ended lately."""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection, func, literal, literal_column, select

from cotrail.models.schema.tables import questions

PACE_SECONDS = 600
"""The time over which it is measured."""


class Pace(Struct, frozen=True):
    """The number of a run's questions that ended lately, and the database's time."""

    questions: int
    now: datetime


def read_paces(connection: Connection, run_ids: Collection[str]) -> dict[str, Pace]:
    """Return the pace of each of these runs of which a question ended lately."""
    since = func.now() - literal(PACE_SECONDS) * literal_column("interval '1 second'")
    query = select(questions.c.run_id, func.count(), func.now()).where(
        questions.c.run_id.in_(run_ids), questions.c.finished_at > since
    )
    return {row[0]: Pace(row[1], row[2]) for row in connection.execute(query.group_by(questions.c.run_id))}
