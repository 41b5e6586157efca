"""Chunks: something is done to all questions of a run, a few at a time, each time in a transaction of its own.

However many there are, nobody waits long for what is locked, and no transaction stands idle while questions are
replayed. What was broken off is gone on with by doing it again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from psycopg.errors import DeadlockDetected, LockNotAvailable
from sqlalchemy import BigInteger, Connection, Engine, bindparam, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from tenacity import Retrying, retry_if_exception_cause_type, stop_after_attempt

from cotrail.errors import InputError, UnknownNameError
from models.commands.submission import WAKE
from models.records.advancing import REPLAYED
from models.schema.states import QuestionStatus, RunState
from models.schema.tables import questions, runs

FINAL = (RunState.CANCELLED, RunState.PRUNED)
"""The states that a run never goes on from."""

LOCK_SECONDS = 1
"""How long a chunk waits for whoever has locked some of its rows."""

TRIES = 30
"""How often a chunk is tried that others hold: for longer than the database leaves its locks to a frozen process."""

Told = Callable[[int], None]
"""Is told, again and again, how many questions are done."""

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
    .limit(REPLAYED)
)
_LOCK = (
    select(questions.c.id)
    .where(
        questions.c.id == func.any(bindparam("ids", type_=ARRAY(BigInteger))),
        questions.c.status == bindparam("status"),
    )
    .order_by(questions.c.id)
    .with_for_update(key_share=True)
)
_LOCK_TIMEOUT = text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")


def nobody(_: int) -> None:
    """Is told, and tells no one."""


def through(chunks: Iterable[int], told: Told) -> int:
    """Goes through all chunks; returns how many questions they did something to."""
    done = 0
    for number in chunks:
        done += number
        told(done)
    return done


def by_chunks(
    engine: Engine,
    run_id: str,
    status: QuestionStatus,
    do: Chunk,
    *,
    final: Sequence[RunState] = FINAL,
    tries: int = TRIES,
) -> Iterator[int]:
    """Does something to the questions of a run that stand so, each of them once; yields to how many, a chunk a time.

    Raises InputError where the run is in one of the states `final`, or comes to it meanwhile, and what the database
    raises where a chunk is locked, or ended for a deadlock, for the last of its tries.
    """
    insisting = Retrying(
        retry=retry_if_exception_cause_type((DeadlockDetected, LockNotAvailable)),
        stop=stop_after_attempt(tries),
        reraise=True,
    )
    after: int | None = 0
    while after is not None:
        done, after = insisting(_next, engine, run_id, status, do, final, after)
        yield done


def _next(
    engine: Engine, run_id: str, status: QuestionStatus, do: Chunk, final: Sequence[RunState], after: int
) -> tuple[int, int | None]:
    """To how many of the next questions it was done, and the last one's id; None where there are no further ones."""
    with engine.begin() as connection:
        connection.execute(_LOCK_TIMEOUT)
        lock_run(connection, run_id, final)
        ids = connection.execute(_SOME, {"run": run_id, "status": status, "after": after}).scalars().all()
        # By a later statement: what came to another end while it was waited for isn't among them any more.
        locked = connection.execute(_LOCK, {"ids": ids, "status": status}).scalars().all()
        return (do(connection, locked) if locked else 0), (ids[-1] if ids else None)


def lock_run(connection: Connection, run_id: str, final: Sequence[RunState] = FINAL) -> None:
    """Takes a run for this transaction; raises UnknownNameError, and InputError where it is in one of these states.

    Workers go on recording its steps: they only make sure that the run is there.
    """
    query = select(runs.c.state).where(runs.c.id == run_id).with_for_update(key_share=True)
    state = connection.execute(query).scalar()
    if state is None:
        raise UnknownNameError(f"there is no run {run_id!r}; `cotrail runs` lists them")
    if state in final:
        raise InputError(f"run {run_id} is {state}, which is final; submit it again")


def wake(connection: Connection, run_id: str) -> None:
    """Tells the maintenance process, once this is committed, that there is something to do."""
    connection.execute(select(func.pg_notify(WAKE, run_id)))
