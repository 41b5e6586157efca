"""What of a run is sealed, and since when."""

from datetime import datetime

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, and_, bindparam, distinct, exists, func, not_, select

from cotrail.core.history import FORK, GIVEN
from cotrail.models.schema.states import AttemptOutcome, QuestionStatus, StepState
from cotrail.models.schema.tables import attempts, questions, steps


class SealedQuestions(Struct, frozen=True, kw_only=True):
    """The questions of a run: how many there are, how many are sealed, and when the first and the last one were."""

    questions: int
    sealed: int
    first_at: datetime | None
    last_at: datetime | None


def read_sealed_questions(connection: Connection, run_id: str) -> SealedQuestions:
    """Return how many of a run's questions are sealed, and when they were."""
    sealed = questions.c.digest.is_not(None)
    statement = select(
        func.count().label("questions"),
        func.count(questions.c.digest).label("sealed"),
        func.min(questions.c.finished_at).filter(sealed).label("first_at"),
        func.max(questions.c.finished_at).filter(sealed).label("last_at"),
    ).where(questions.c.run_id == run_id)
    return SealedQuestions(**connection.execute(statement).mappings().one())


# What happened to a run's questions beside their being answered: cancelled, failed and tried again, taken over.


class Irregularities(Struct, frozen=True, kw_only=True):
    """Numbers of a run's questions, and of its steps.

    unended: questions that are open; cancelled: by a person, and not by a limit; unasked: those of them without any
        step begun. retried: that had failed and were opened again (`cotrail.models.commands.retrying`).
    taken_over: steps that a fork has from its origin.
    """

    unended: int
    blocked: int
    failed: int
    cancelled: int
    unasked: int
    retried: int
    taken_over: int


_run: ColumnElement[str] = bindparam("run")
_of_run = questions.c.run_id == _run
_by_person = and_(questions.c.status == QuestionStatus.CANCELLED, questions.c.ended_by.is_(None))
_begun = exists().where(steps.c.question_id == questions.c.id, attempts.c.step_id == steps.c.id)


def _number(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.count().filter(condition)


_QUESTIONS = select(
    _number(questions.c.status == QuestionStatus.OPEN).label("unended"),
    _number(questions.c.status == QuestionStatus.BLOCKED).label("blocked"),
    _number(questions.c.status == QuestionStatus.FAILED).label("failed"),
    _number(_by_person).label("cancelled"),
    _number(and_(_by_person, not_(_begun))).label("unasked"),
).where(_of_run)
_still_failed = and_(attempts.c.epoch == steps.c.epoch, steps.c.state == StepState.FAILED)
_RETRIED = (
    # The failure of a step is its last attempt's, unless the step was opened again since.
    select(func.count(distinct(steps.c.question_id)))
    .join_from(attempts, steps, attempts.c.step_id == steps.c.id)
    .where(steps.c.run_id == _run, attempts.c.outcome == AttemptOutcome.FAILED, not_(_still_failed))
)
_TAKEN_OVER = select(func.count()).where(steps.c.run_id == _run, steps.c.worker.in_([FORK, GIVEN]))


def read_irregularities(connection: Connection, run_id: str) -> Irregularities:
    """Return what happened to a run's questions, as it stands."""
    counts = connection.execute(_QUESTIONS, {"run": run_id}).mappings().one()
    retried, taken_over = (connection.execute(query, {"run": run_id}).scalar_one() for query in (_RETRIED, _TAKEN_OVER))
    return Irregularities(**counts, retried=retried, taken_over=taken_over)
