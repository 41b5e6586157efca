"""Controlling a run: pause, resume, prioritize, cancel. Each is a change of rows, not a message.

A run's own row is changed first, and from then on the command is in force; its questions follow in chunks
(`cotrail.models.commands.chunks`). Repeating an interrupted command completes it; maintenance completes a cancellation
too.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    bindparam,
    exists,
    select,
    update,
)

from cotrail.errors import InputError
from cotrail.models.commands.cancelling import cancel_questions
from cotrail.models.commands.chunks import LOCK_TRIES, OnProgress, by_chunks, lock_run, silently, through
from cotrail.models.commands.unblocking import unblock
from cotrail.models.records.maintaining import wake
from cotrail.models.records.runs import FindSystem
from cotrail.models.schema.states import (
    UNENDED_QUESTIONS,
    DesiredState,
    QuestionStatus,
    StepState,
)
from cotrail.models.schema.tables import questions, runs, steps

_run: ColumnElement[str] = bindparam("run")

_unended = exists().where(questions.c.run_id == runs.c.id, questions.c.status.in_(UNENDED_QUESTIONS))
_BEING_CANCELLED = select(runs.c.id).where(
    runs.c.digest.is_(None), runs.c.desired_state == DesiredState.CANCELLED, _unended
)

_SEND_AGAIN = (
    update(steps)
    .where(steps.c.run_id == _run, steps.c.state == StepState.READY, steps.c.sent_at.is_not(None))
    .values(sent_at=None)
)
"""Steps that were admitted before the pause: workers dropped their messages when they found the run paused."""


def pause(engine: Engine, run_id: str) -> None:
    """Have no further step of the run begun; results of those under way are recorded."""
    with engine.begin() as connection:
        _change(connection, run_id, desired_state=DesiredState.PAUSED)


def resume(engine: Engine, run_id: str, find_system: FindSystem, report: OnProgress = silently) -> None:
    """Make a paused run active again, and open the blocked questions of any run again."""
    with engine.begin() as connection:
        _change(connection, run_id, desired_state=DesiredState.ACTIVE)
        connection.execute(_SEND_AGAIN, {"run": run_id})
        wake(connection, run_id)
    unblock(engine, run_id, find_system, report)


def prioritize(engine: Engine, run_id: str, priority: int) -> None:
    """Have the run's questions admitted before those of runs with a lower priority."""
    with engine.begin() as connection:
        _change(connection, run_id, priority=priority)
        wake(connection, run_id)


def cancel(engine: Engine, run_id: str, report: OnProgress = silently) -> None:
    """End a run for good: what is recorded stays, and its open questions and their steps are cancelled."""
    with engine.begin() as connection:
        if run_id not in being_cancelled(connection):
            _change(connection, run_id, desired_state=DesiredState.CANCELLED)
    through(cancelling(engine, run_id), report)


def being_cancelled(connection: Connection) -> list[str]:
    """Return the cancelled runs some of whose questions aren't cancelled yet."""
    return list(connection.execute(_BEING_CANCELLED).scalars())


def cancelling(engine: Engine, run_id: str, tries: int = LOCK_TRIES) -> Iterator[int]:
    """Cancel the questions of a cancelled run, a chunk at each `next`; yields how many were in it."""
    # Open questions first: some may become blocked meanwhile, but no blocked one is opened again in a cancelled run.
    for status in (QuestionStatus.OPEN, QuestionStatus.BLOCKED):
        yield from by_chunks(engine, run_id, status, cancel_questions, final=(DesiredState.PRUNED,), tries=tries)
    with engine.begin() as connection:
        wake(connection, run_id)


def _change(connection: Connection, run_id: str, **values: Any) -> None:
    lock_run(connection, run_id)
    unended = questions.c.run_id == run_id, questions.c.status.in_(UNENDED_QUESTIONS)
    if connection.execute(select(questions.c.id).where(*unended).limit(1)).first() is None:
        raise InputError(f"all questions of run {run_id} have ended; `cotrail retry` tries failed ones again")
    connection.execute(update(runs).where(runs.c.id == run_id).values(values))
