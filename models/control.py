"""What a person may do to a run under way: pause, resume, prioritize, cancel. Each is rows, not a message."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, bindparam, func, literal, null, or_, select, update
from sqlalchemy.exc import OperationalError
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from cotrail.errors import InputError, UnknownNameError
from models.advancing import advance_questions, lock_questions
from models.runs import Runs
from models.seals import EARLIER, question_digest, question_head, step_digest
from models.submission import WAKE
from models.tables import AttemptOutcome, QuestionStatus, RunState, StepState, attempts, questions, runs, steps

_run: ColumnElement[str] = bindparam("run")

_ended_step: dict[str, Any] = {
    "state": literal(StepState.CANCELLED),
    "finished_at": func.now(),
    "lease_until": null(),
}
_cancelled = (
    update(steps)
    .where(steps.c.run_id == _run, steps.c.state.in_([StepState.WAITING, StepState.READY, StepState.RUNNING]))
    .values(_ended_step | {"digest": step_digest(_ended_step, or_(EARLIER, attempts.c.outcome.is_not(None)))})
    .returning(steps.c.id, steps.c.epoch)
    .cte("cancelled")
)
_CANCEL_STEPS = (
    update(attempts)
    .where(attempts.c.step_id == _cancelled.c.id, attempts.c.epoch == _cancelled.c.epoch, attempts.c.outcome.is_(None))
    .values(outcome=AttemptOutcome.CANCELLED, ended_at=func.now())
)

_unended = (
    select(questions.c.id)
    .where(questions.c.run_id == _run, questions.c.status.in_([QuestionStatus.OPEN, QuestionStatus.BLOCKED]))
    .order_by(questions.c.id)
    .with_for_update(key_share=True)
)
_ended_question: dict[str, Any] = {"status": literal(QuestionStatus.CANCELLED), "finished_at": func.now()}
_CANCEL_QUESTIONS = (
    update(questions)
    .where(questions.c.run_id == _run, questions.c.status.in_([QuestionStatus.OPEN, QuestionStatus.BLOCKED]))
    .values(_ended_question | {"digest": question_digest(question_head(), _ended_question)})
)


def pause(engine: Engine, run_id: str) -> None:
    """No further step of the run is begun; those under way are recorded."""
    with engine.begin() as connection:
        _change(connection, run_id, state=RunState.PAUSED)


def resume(engine: Engine, run_id: str) -> None:
    """Goes on with a paused run, and tries the blocked questions of any run again."""
    with engine.begin() as connection:
        _change(connection, run_id, state=RunState.ACTIVE)
        unblock(connection, run_id)
        unsent = update(steps).where(steps.c.run_id == run_id, steps.c.state == StepState.READY).values(sent_at=None)
        connection.execute(unsent)
        wake(connection, run_id)


def prioritize(engine: Engine, run_id: str, priority: int) -> None:
    """Has the run's questions admitted before those of runs with a lower priority."""
    with engine.begin() as connection:
        _change(connection, run_id, priority=priority)
        wake(connection, run_id)


@retry(retry=retry_if_exception_type(OperationalError), stop=stop_after_attempt(5), reraise=True)
def cancel(engine: Engine, run_id: str) -> None:
    """Ends a run for ever; what is recorded stays, and its open questions and their steps are cancelled.

    Workers claim and renew steps meanwhile; where they and this wait for one another, PostgreSQL ends one, which is
    then done again.
    """
    with engine.begin() as connection:
        _change(connection, run_id, state=RunState.CANCELLED)
        connection.execute(_unended, {"run": run_id})
        connection.execute(_CANCEL_STEPS, {"run": run_id})
        connection.execute(_CANCEL_QUESTIONS, {"run": run_id})
        wake(connection, run_id)


def unblock(connection: Connection, run_id: str) -> int:
    """Opens the blocked questions of a run again; returns how many."""
    unblocked = (
        update(questions)
        .where(questions.c.run_id == run_id, questions.c.status == QuestionStatus.BLOCKED)
        .values(status=QuestionStatus.OPEN, reason=null(), finished_at=null())
        .returning(questions.c.id)
    )
    ids = connection.execute(unblocked).scalars().all()
    advance_questions(connection, Runs(), lock_questions(connection, ids), send=False)
    return len(ids)


def lock_run(connection: Connection, run_id: str) -> None:
    """Takes an open run for this transaction; raises UnknownNameError, and InputError where it is over."""
    query = select(runs.c.state).where(runs.c.id == run_id).with_for_update()
    state = connection.execute(query).scalar()
    if state is None:
        raise UnknownNameError(f"there is no run {run_id!r}; `cotrail runs` lists them")
    if state in (RunState.CANCELLED, RunState.PRUNED):
        raise InputError(f"run {run_id} is {state}, which is final; submit it again")


def wake(connection: Connection, run_id: str) -> None:
    """Tells the maintenance process, once this is committed, that there is something to do."""
    connection.execute(select(func.pg_notify(WAKE, run_id)))


def _change(connection: Connection, run_id: str, **values: Any) -> None:
    lock_run(connection, run_id)
    still = questions.c.status.in_([QuestionStatus.OPEN, QuestionStatus.BLOCKED])
    if connection.execute(select(questions.c.id).where(questions.c.run_id == run_id, still).limit(1)).first() is None:
        raise InputError(f"all questions of run {run_id} have ended; `cotrail retry` tries failed ones again")
    connection.execute(update(runs).where(runs.c.id == run_id).values(values))
