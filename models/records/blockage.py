"""Circuit breaker of a run: a cause that blocks question after question stops the run until a person has fixed it.

The rows themselves are its state. It is open while the run's latest questions to end or be blocked, `IN_A_ROW` of them,
are all blocked by one cause: then no further questions are admitted. Resuming or retrying the run opens these questions
again, and so closes it.
"""

import socket

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, and_, bindparam, exists, func, not_, or_, select

from cotrail.core.results import Failure, failure_of
from cotrail.errors import ReplayMismatchError, UnreadableError
from cotrail.models.records.projects import in_project
from cotrail.models.schema.conditions import QUESTION_OPEN
from cotrail.models.schema.states import DesiredState, QuestionStatus, StepState
from cotrail.models.schema.tables import questions, runs, steps

IN_A_ROW = 20
"""The number of questions blocked by one cause in a row after which no further ones are admitted."""


OF_THE_RECORD = (ReplayMismatchError, UnreadableError)
"""What blocks a question on whichever host; everything else is about what the host of this process has."""


def reason_here(error: BaseException) -> Failure:
    """Return why a question is blocked, as it is stored: with the host where a person has to fix it."""
    failure = failure_of(error)
    if isinstance(error, OF_THE_RECORD):
        return failure
    return Failure(type=failure.type, message=f"on the host {socket.gethostname()}, {failure.message}")


class Blockage(Struct, frozen=True, kw_only=True):
    """The cause that stops a run. questions: how many it has blocked; type, message: those of the latest."""

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
"""Condition of statements over runs: one cause blocks the run."""

_of_open = exists().where(steps.c.run_id == runs.c.id, QUESTION_OPEN)
# In parts, as each has a partial index of its own: `ready` alone would match neither of the first two.
_under_way = or_(
    _of_open.where(steps.c.state == StepState.READY, steps.c.sent_at.is_(None)),
    _of_open.where(steps.c.state == StepState.READY, steps.c.sent_at.is_not(None)),
    _of_open.where(steps.c.state == StepState.RUNNING),
    _of_open.where(steps.c.state == StepState.BATCHED),
)
_STOPPED = select(runs.c.id).where(runs.c.digest.is_(None), runs.c.desired_state == DesiredState.ACTIVE, STOPPED)
_BLOCKED = (
    select(_type, questions.c.reason["message"].astext, func.count().over(partition_by=_type))
    .where(questions.c.run_id == bindparam("run"), questions.c.status == QuestionStatus.BLOCKED)
    .order_by(questions.c.finished_at.desc(), questions.c.id.desc())
    .limit(1)
)


def stopped_runs(connection: Connection) -> frozenset[str]:
    """Return the runs that one cause stops, and of which no step is under way any more."""
    stopped = _STOPPED.where(not_(_under_way), *in_project(connection, runs))
    return frozenset(connection.execute(stopped).scalars())


def read_blockage(connection: Connection, run_id: str) -> Blockage | None:
    """Return the cause that stops a run, if one does."""
    if connection.execute(_STOPPED.where(runs.c.id == run_id)).first() is None:
        return None
    row = connection.execute(_BLOCKED, {"run": run_id}).one_or_none()
    return None if row is None else Blockage(type=row[0], message=row[1], questions=row[2])
