"""Blockages: what stops a run as a whole, so that not all of its questions meet it before a person has mended it.

It is seen from the rows: the latest so many questions of a run that came to an end, or were blocked, are all blocked by
one cause. Then no further ones are admitted; whoever has them tried again opens these, and so ends it.
"""

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, and_, bindparam, exists, func, not_, or_, select

from models.schema.conditions import QUESTION_OPEN
from models.schema.states import QuestionStatus, RunState, StepState
from models.schema.tables import questions, runs, steps

IN_A_ROW = 20
"""How many questions of a run are blocked by one cause, and none ends since, until no further ones are admitted."""


class Blockage(Struct, frozen=True, kw_only=True):
    """What stops a run. questions: how many it has blocked; type, message: of the latest."""

    questions: int
    type: str
    message: str


_type = questions.c.reason["type"].astext
_latest = (
    select(questions.c.status, _type.label("type"))
    .where(questions.c.run_id == runs.c.id, questions.c.finished_at.is_not(None))
    .order_by(questions.c.finished_at.desc(), questions.c.id.desc())
    .limit(IN_A_ROW)
    .correlate(runs)
    .lateral("latest")
)
_by_one_cause = and_(
    func.count() == IN_A_ROW,
    func.bool_and(_latest.c.status == QuestionStatus.BLOCKED),
    func.count(_latest.c.type.distinct()) == 1,
)
STOPPED: ColumnElement[bool] = select(_by_one_cause).select_from(_latest).correlate(runs).scalar_subquery()
"""For statements over runs: whether one cause blocks the run."""

_of_open = exists().where(steps.c.run_id == runs.c.id, QUESTION_OPEN)
# Each part by the partial index of its own.
_under_way = or_(
    _of_open.where(steps.c.state == StepState.READY, steps.c.sent_at.is_(None)),
    _of_open.where(steps.c.state == StepState.READY, steps.c.sent_at.is_not(None)),
    _of_open.where(steps.c.state == StepState.RUNNING),
)
_STOPPED = select(runs.c.id).where(runs.c.digest.is_(None), runs.c.state == RunState.ACTIVE, STOPPED)
_BLOCKED = (
    select(_type, questions.c.reason["message"].astext, func.count().over(partition_by=_type))
    .where(questions.c.run_id == bindparam("run"), questions.c.status == QuestionStatus.BLOCKED)
    .order_by(questions.c.finished_at.desc(), questions.c.id.desc())
    .limit(1)
)


def stopped_runs(connection: Connection) -> frozenset[str]:
    """The runs that are stopped so, and of which no step is under way any more."""
    return frozenset(connection.execute(_STOPPED.where(not_(_under_way))).scalars())


def read_blockage(connection: Connection, run_id: str) -> Blockage | None:
    """What stops a run, if anything does."""
    if connection.execute(_STOPPED.where(runs.c.id == run_id)).first() is None:
        return None
    row = connection.execute(_BLOCKED, {"run": run_id}).one_or_none()
    return None if row is None else Blockage(type=row[0], message=row[1], questions=row[2])
