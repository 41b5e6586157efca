"""Controlling a run: pause, resume, prioritize, cancel. Each is a change of rows, not a message.

A run's own row is changed first, and from then on the command is in force. Its questions follow in chunks, each a
transaction of its own: however many there are, no lock is held for long, and no transaction is idle while questions are
replayed. Repeating an interrupted command completes it; maintenance completes a cancellation too.

Unblocking a run's questions once a person has fixed what blocked them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa
from psycopg.errors import DeadlockDetected, LockNotAvailable
from sqlalchemy import BigInteger, Connection, Engine, bindparam, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.errors import InputError, UnknownNameError
from cotrail.models.records.advancing import begin_questions
from cotrail.models.records.budgets import read_budgets, read_run_consumed
from cotrail.models.records.questions import MOST_REPLAYED
from cotrail.models.records.runs import FindSystem, Runs
from cotrail.models.schema import states
from cotrail.models.schema.database import notify
from cotrail.models.schema.seals import EARLIER, question_digest, question_head, step_digest
from cotrail.models.schema.states import DesiredState, QuestionStatus
from cotrail.models.schema.tables import QUESTION_OPEN, attempts, questions, runs, steps

FINAL_STATES = (DesiredState.CANCELLED, DesiredState.PRUNED)
"""The states that a run never leaves."""

LOCK_SECONDS = 1
"""How long a chunk waits for rows that other transactions have locked."""

LOCK_TRIES = 30
"""The number of tries of a chunk whose rows are locked: longer than the database leaves its locks to a frozen
process."""

OnProgress = Callable[[int], None]
"""Called after each chunk with the number of questions done so far."""

Chunk = Callable[[Connection, Sequence[int]], int]
"""Does something to the questions of these ids, which are locked; returns to how many of them."""

_SOME = (
    select(questions.c.id)
    .where(
        questions.c.run_id == bindparam("run"),
        questions.c.status == bindparam("status"),
        questions.c.id > bindparam("after"),
    )
    .order_by(questions.c.id)
    .limit(MOST_REPLAYED)
)
_LOCK = (
    select(questions.c.id)
    .where(
        questions.c.id == func.any(bindparam("ids", type_=ARRAY(BigInteger))), questions.c.status == bindparam("status")
    )
    .order_by(questions.c.id)
    .with_for_update(key_share=True)
)
_LOCK_TIMEOUT = text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")


def silently(_: int) -> None:
    """Report nothing."""


def through(chunks: Iterable[int], report: OnProgress) -> int:
    """Go through all chunks; returns to how many questions they did something."""
    done = 0
    for number in chunks:
        done += number
        report(done)
    return done


def by_chunks(
    engine: Engine,
    run_id: str,
    status: QuestionStatus,
    do: Chunk,
    *,
    final: Sequence[DesiredState] = FINAL_STATES,
    tries: int = LOCK_TRIES,
) -> Iterator[int]:
    """Do something once to each question of a run with that status; yields to how many, chunk by chunk.

    Raises InputError where the run is in one of the states `final`, or reaches one, and the database's error where a
    chunk is locked, or ended for a deadlock, at the last of its tries.
    """
    from tenacity import Retrying, retry_if_exception_cause_type, stop_after_attempt  # slow: it imports Tornado

    insisting = Retrying(
        retry=retry_if_exception_cause_type((DeadlockDetected, LockNotAvailable)),
        stop=stop_after_attempt(tries),
        reraise=True,
    )
    # By id and not by status alone: a chunk may leave questions as they were, and would be chosen again and again.
    after: int | None = 0
    while after is not None:
        done, after = insisting(_next, engine, run_id, status, do, final, after)
        yield done


def _next(
    engine: Engine, run_id: str, status: QuestionStatus, do: Chunk, final: Sequence[DesiredState], after: int
) -> tuple[int, int | None]:
    """Return to how many of the next questions it was done, and the id of the last one, None where none are left."""
    with engine.begin() as connection:
        connection.execute(_LOCK_TIMEOUT)
        lock_run(connection, run_id, final)
        ids = connection.execute(_SOME, {"run": run_id, "status": status, "after": after}).scalars().all()
        # A statement of its own, so that it sees what was committed while it waited for the locks: questions whose
        # status changed meanwhile drop out.
        locked = connection.execute(_LOCK, {"ids": ids, "status": status}).scalars().all()
        return (do(connection, locked) if locked else 0), (ids[-1] if ids else None)


def lock_run(connection: Connection, run_id: str, final: Sequence[DesiredState] = FINAL_STATES) -> None:
    """Lock a run for this transaction; raises UnknownNameError, and InputError where it is in one of these states.

    FOR NO KEY UPDATE: two commands on the same run come one after the other, and workers continue to record its steps,
    whose foreign keys lock it FOR KEY SHARE.
    """
    query = select(runs.c.desired_state).where(runs.c.id == run_id).with_for_update(key_share=True)
    state = connection.execute(query).scalar()
    if state is None:
        raise UnknownNameError(f"there is no run {run_id!r}; `cotrail runs` lists them")
    if state in final:
        raise InputError(f"run {run_id} is {state}, which is final; submit it again")


# Cancelling questions: what is recorded of them stays, and nothing follows.

_ids = sa.bindparam("ids", type_=ARRAY(sa.BigInteger))

_ended_step: dict[str, Any] = {
    "state": sa.literal(states.StepState.CANCELLED),
    "finished_at": sa.func.now(),
    "lease_until": sa.null(),
}
_cancelled = (
    sa.update(steps)
    .where(steps.c.question_id == sa.func.any(_ids), steps.c.state.in_(states.UNENDED_STEPS))
    .values(_ended_step | {"digest": step_digest(_ended_step, sa.or_(EARLIER, attempts.c.outcome.is_not(None)))})
    .returning(steps.c.id, steps.c.epoch)
    .cte("cancelled")
)
_CANCEL_STEPS = (
    sa.update(attempts)
    .where(attempts.c.step_id == _cancelled.c.id, attempts.c.epoch == _cancelled.c.epoch, attempts.c.outcome.is_(None))
    .values(outcome=states.AttemptOutcome.CANCELLED, ended_at=sa.func.now())
)
_ended_question: dict[str, Any] = {
    "status": sa.literal(states.QuestionStatus.CANCELLED),
    "finished_at": sa.func.now(),
    "ended_by": sa.cast(sa.bindparam("ended_by"), sa.Text),
}
_CANCEL_QUESTIONS = (
    sa.update(questions)
    .where(questions.c.id == sa.func.any(_ids))
    .values(_ended_question | {"digest": question_digest(question_head(), _ended_question)})
)


def cancel_questions(connection: sa.Connection, ids: Sequence[int], ended_by: str | None = None) -> int:
    """Cancel questions, which are locked, and their steps; returns how many.

    ended_by: a limit or a rule that ended them.
    """
    connection.execute(_CANCEL_STEPS, {"ids": ids})
    return connection.execute(_CANCEL_QUESTIONS, {"ids": ids, "ended_by": ended_by}).rowcount


_UNBLOCK = (
    sa.update(questions)
    .where(questions.c.id == sa.func.any(_ids))
    .values(status=states.QuestionStatus.OPEN, reason=sa.null(), finished_at=sa.null())
)
_UNBLOCK_STEPS = (
    sa.update(steps)
    .where(steps.c.question_id == sa.func.any(_ids), steps.c.state == states.StepState.BLOCKED, QUESTION_OPEN)
    .values(state=states.StepState.WAITING)
)


def used_up(connection: sa.Connection, run_id: str, then: str) -> str:
    """Return why no question of a run can be opened again, where its budget is used up; then: what follows a raise."""
    limit = read_budgets(connection, run_id).run.reached(read_run_consumed(connection, run_id))
    raising = f"raise it (`cotrail budget {run_id} --run-budget {limit}=N`), then {then}"
    return f"the run's budget of {limit} is used up; {raising}" if limit else ""


def unblock(engine: sa.Engine, run_id: str, find_system: FindSystem, report: OnProgress = silently) -> int:
    """Open the blocked questions of a run again, so that they wait for admission; returns how many."""
    chunks = by_chunks(engine, run_id, states.QuestionStatus.BLOCKED, partial(_unblock, Runs(find_system)))
    done = through(chunks, report)
    if done:
        with engine.begin() as connection:
            notify(connection, run_id)
    return done


def _unblock(plans: Runs, connection: sa.Connection, ids: Sequence[int]) -> int:
    connection.execute(_UNBLOCK, {"ids": ids})
    # The replay may block a question again: its steps then stay blocked.
    begin_questions(connection, plans, ids)
    connection.execute(_UNBLOCK_STEPS, {"ids": ids})
    return len(ids)


_run: sa.ColumnElement[str] = sa.bindparam("run")
_blocked = sa.exists().where(questions.c.run_id == runs.c.id, questions.c.status == states.QuestionStatus.BLOCKED)
_STATE_OF_BLOCKED = sa.select(runs.c.desired_state).where(runs.c.id == _run, _blocked)

_unended = sa.exists().where(questions.c.run_id == runs.c.id, questions.c.status.in_(states.UNENDED_QUESTIONS))
_BEING_CANCELLED = sa.select(runs.c.id).where(
    runs.c.digest.is_(None), runs.c.desired_state == states.DesiredState.CANCELLED, _unended
)

_SEND_AGAIN = (
    sa.update(steps)
    .where(steps.c.run_id == _run, steps.c.state == states.StepState.READY, steps.c.sent_at.is_not(None))
    .values(sent_at=None)
)
"""Steps that were admitted before the pause: workers dropped their messages when they found the run paused."""


def pause(engine: sa.Engine, run_id: str) -> None:
    """Have no further step of the run begun; results of those under way are recorded."""
    with engine.begin() as connection:
        _change(connection, run_id, desired_state=states.DesiredState.PAUSED)


def resume(engine: sa.Engine, run_id: str, find_system: FindSystem, report: OnProgress = silently) -> None:
    """Make a paused run active again, and open the blocked questions of any run again.

    Where the run's budget is used up they stay blocked, and InputError says so of a run that isn't paused.
    """
    with engine.begin() as connection:
        lock_run(connection, run_id)
        state = connection.execute(_STATE_OF_BLOCKED, {"run": run_id}).scalar()
        refusal = used_up(connection, run_id, "resume") if state else ""
        if refusal and state != states.DesiredState.PAUSED:
            raise InputError(refusal)
        _change(connection, run_id, desired_state=states.DesiredState.ACTIVE)
        connection.execute(_SEND_AGAIN, {"run": run_id})
        notify(connection, run_id)
    if not refusal:
        unblock(engine, run_id, find_system, report)


def prioritize(engine: sa.Engine, run_id: str, priority: int) -> None:
    """Have the run's questions admitted before those of runs with a lower priority."""
    with engine.begin() as connection:
        _change(connection, run_id, priority=priority)
        notify(connection, run_id)


def cancel(engine: sa.Engine, run_id: str, report: OnProgress = silently) -> None:
    """End a run for good: what is recorded stays, and its open questions and their steps are cancelled."""
    with engine.begin() as connection:
        # A cancellation that was interrupted is completed: `_change` would refuse the run, whose state is final.
        if run_id not in being_cancelled(connection):
            _change(connection, run_id, desired_state=states.DesiredState.CANCELLED)
    through(cancelling(engine, run_id), report)


def being_cancelled(connection: sa.Connection) -> list[str]:
    """Return the cancelled runs some of whose questions aren't cancelled yet."""
    return list(connection.execute(_BEING_CANCELLED).scalars())


def cancelling(engine: sa.Engine, run_id: str, tries: int = LOCK_TRIES) -> Iterator[int]:
    """Cancel the questions of a cancelled run, a chunk at each `next`; yields how many were in it."""
    # Open questions first: some may become blocked meanwhile, but no blocked one is opened again in a cancelled run.
    for status in (states.QuestionStatus.OPEN, states.QuestionStatus.BLOCKED):
        yield from by_chunks(engine, run_id, status, cancel_questions, final=(states.DesiredState.PRUNED,), tries=tries)
    with engine.begin() as connection:
        # Maintenance then removes the run's messages from their queues.
        notify(connection, run_id)


def _change(connection: sa.Connection, run_id: str, **values: Any) -> None:
    lock_run(connection, run_id)
    unended = questions.c.run_id == run_id, questions.c.status.in_(states.UNENDED_QUESTIONS)
    if connection.execute(sa.select(questions.c.id).where(*unended).limit(1)).first() is None:
        raise InputError(f"all questions of run {run_id} have ended; `cotrail retry` tries failed ones again")
    connection.execute(sa.update(runs).where(runs.c.id == run_id).values(values))
