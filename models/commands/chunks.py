"""Doing something to all questions of a run in chunks, each a transaction of its own.

However many questions there are, no lock is held for long, and no transaction is idle while questions are replayed. A
command that was interrupted is completed by repeating it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from psycopg.errors import DeadlockDetected, LockNotAvailable
from sqlalchemy import BigInteger, Connection, Engine, bindparam, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.errors import InputError, UnknownNameError
from cotrail.models.records.questions import MOST_REPLAYED
from cotrail.models.schema.states import DesiredState, QuestionStatus
from cotrail.models.schema.tables import questions, runs

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
