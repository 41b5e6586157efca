"""The executions of a step and what seals it; when the steps of a question were asked for, begun and ended."""

from datetime import datetime

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, and_, bindparam, distinct, exists, func, not_, select

from cotrail.core.history import FORK, GIVEN, Irregularities
from cotrail.core.results import Failure
from cotrail.models.schema.states import AttemptOutcome, QuestionStatus, StepState
from cotrail.models.schema.tables import attempts, questions, steps


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


class StepAttempt(Struct, frozen=True, kw_only=True):
    """An execution of a step; number: from 1, a claim whose step wasn't begun left out.

    outcome: None while it is under way; failure: what went wrong, where something did.
    """

    number: int
    worker: str
    started_at: datetime
    ended_at: datetime | None
    outcome: AttemptOutcome | None
    failure: Failure | None


class StepSeal(Struct, frozen=True, kw_only=True):
    """A step in the record.

    fingerprint: of everything that decides its result; digest: of the step as it ended, None before that;
    previous: of the question's record before it, which `digest` includes; adopted_from: run, question and step that
    computed its result, where that is another one and still there.
    """

    fingerprint: str
    digest: str | None
    previous: str
    adopted_from: tuple[str, str, int] | None


def read_attempts(connection: Connection, question_id: int, sequence: int) -> tuple[StepAttempt, ...]:
    """Return the executions of a question's step, the first one first."""
    columns = (attempts.c[name] for name in ("worker", "started_at", "ended_at", "outcome", "error"))
    of_step = select(*columns).join_from(attempts, steps, attempts.c.step_id == steps.c.id)
    query = of_step.where(steps.c.question_id == question_id, steps.c.sequence == sequence).order_by(attempts.c.epoch)
    return tuple(
        StepAttempt(
            number=number,
            worker=row.worker,
            started_at=row.started_at,
            ended_at=row.ended_at,
            outcome=row.outcome,
            failure=msgspec.convert(row.error, Failure | None),
        )
        for number, row in enumerate(connection.execute(query), start=1)
    )


def read_seal(connection: Connection, question_id: int, sequence: int) -> StepSeal:
    """Return what seals a question's step."""
    columns = (steps.c[name] for name in ("fingerprint", "digest", "previous", "adopted_from"))
    query = select(*columns).where(steps.c.question_id == question_id, steps.c.sequence == sequence)
    row = connection.execute(query).one()
    twin = select(questions.c.run_id, questions.c.key, steps.c.sequence)
    of_twin = twin.join_from(steps, questions, steps.c.question_id == questions.c.id)
    computed = connection.execute(of_twin.where(steps.c.id == row.adopted_from)).one_or_none()
    return StepSeal(
        fingerprint=row.fingerprint,
        digest=row.digest,
        previous=row.previous,
        adopted_from=None if computed is None else (computed.run_id, computed.key, computed.sequence),
    )


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


# What happened to a run's questions apart from their being answered: cancelled, failed and tried again, taken over.

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
