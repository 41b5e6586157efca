"""When the steps of a question were asked for, begun and ended."""

from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection, func, select

from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import steps


class StepTimes(Struct, frozen=True, kw_only=True):
    """A step in time.

    batch: equal for the steps that the system asked for together, from 1.
    asked_at: when the system asked for it; started_at: when its last execution began; None before that.
    """

    sequence: int
    kind: str
    state: StepState
    batch: int
    asked_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def read_step_times(connection: Connection, question_id: int) -> tuple[StepTimes, ...]:
    """Return the times of a question's steps, in their order."""
    first = func.min(steps.c.sequence).over(partition_by=steps.c.previous)
    begun = select(
        *(steps.c[name] for name in ("sequence", "kind", "state", "started_at", "finished_at")),
        steps.c.created_at.label("asked_at"),
        first.label("first"),
    ).where(steps.c.question_id == question_id)
    of_steps = begun.subquery()
    batch = func.dense_rank().over(order_by=of_steps.c.first).label("batch")
    columns = [each for each in of_steps.c if each.name != "first"]
    rows = connection.execute(select(*columns, batch).order_by(of_steps.c.sequence)).mappings()
    return tuple(StepTimes(**row) for row in rows)
