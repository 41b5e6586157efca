"""What a person may do to a run under way: pause, resume, cancel. Each is a row, not a message."""

from sqlalchemy import Connection, Engine, func, select, update

from cotrail.errors import InputError, UnknownNameError
from models.advancing import advance_questions, lock_questions
from models.runs import Runs
from models.submission import WAKE
from models.tables import QuestionStatus, RunState, StepState, questions, runs, steps


def pause(engine: Engine, run_id: str) -> None:
    """No further step of the run is begun; those under way are recorded."""
    with engine.begin() as connection:
        _change(connection, run_id, RunState.PAUSED)


def resume(engine: Engine, run_id: str) -> None:
    """Goes on with a paused run, and tries the blocked questions of any run again."""
    with engine.begin() as connection:
        _change(connection, run_id, RunState.ACTIVE)
        of_run = questions.c.run_id == run_id
        unblocked = (
            update(questions)
            .where(of_run, questions.c.status == QuestionStatus.BLOCKED)
            .values(status=QuestionStatus.OPEN, reason=None, finished_at=None)
            .returning(questions.c.id)
        )
        ids = connection.execute(unblocked).scalars().all()
        unsent = update(steps).where(steps.c.run_id == run_id, steps.c.state == StepState.READY).values(sent_at=None)
        connection.execute(unsent)
        advance_questions(connection, Runs(), lock_questions(connection, ids), send=False)
        connection.execute(select(func.pg_notify(WAKE, run_id)))


def cancel(engine: Engine, run_id: str) -> None:
    """Ends a run for ever; what is recorded stays, and its open questions are cancelled."""
    with engine.begin() as connection:
        _change(connection, run_id, RunState.CANCELLED)
        still = questions.c.status.in_([QuestionStatus.OPEN, QuestionStatus.BLOCKED])
        ended = {"status": QuestionStatus.CANCELLED, "finished_at": func.now()}
        connection.execute(update(questions).where(questions.c.run_id == run_id, still).values(ended))


def _change(connection: Connection, run_id: str, state: RunState) -> None:
    current = connection.execute(select(runs.c.state).where(runs.c.id == run_id).with_for_update()).scalar()
    if current is None:
        raise UnknownNameError(f"there is no run {run_id!r}; `cotrail runs` lists them")
    if current == RunState.CANCELLED:
        raise InputError(f"run {run_id} is cancelled, which is final; submit it again")
    connection.execute(update(runs).where(runs.c.id == run_id).values(state=state))
