"""Closing runs: a run whose questions have all ended is sealed by a digest over all of them."""

from collections.abc import Callable

from psycopg.errors import SerializationFailure
from sqlalchemy import Connection, Engine, Text, bindparam, exists, select, update
from sqlalchemy.exc import OperationalError

from cotrail.models.schema.seals import run_digest
from cotrail.models.schema.states import UNENDED_QUESTIONS, DesiredState
from cotrail.models.schema.tables import questions, runs

_run = bindparam("run", type_=Text)
_unended = questions.c.status.in_(UNENDED_QUESTIONS)
_due = (
    runs.c.digest.is_(None),  # so that an index leaves out the runs that are closed
    runs.c.desired_state != DesiredState.PRUNED,
    ~exists().where(questions.c.run_id == runs.c.id, _unended),
)
_DUE = select(runs.c.id).where(*_due).order_by(runs.c.created_at, runs.c.id)
_CLOSE = update(runs).where(runs.c.id == _run, *_due).values(digest=run_digest(_run)).returning(runs.c.desired_state)

Closed = Callable[[Connection, str, str], None]
"""Called in the transaction that seals a run, with its id and what a person wanted of it."""


def runs_to_close(connection: Connection) -> list[str]:
    """Return the runs whose questions have all ended and that aren't closed, the oldest first."""
    return list(connection.execute(_DUE).scalars())


def _tell_nobody(_: Connection, __: str, ___: str) -> None:
    """Tells nobody."""


def close_run(engine: Engine, run_id: str, closed: Closed = _tell_nobody) -> bool:
    """Seal a run, unless its questions are opened again meanwhile; returns whether it did.

    The digest over millions of questions takes minutes, and nothing is locked for that long. Instead REPEATABLE READ
    makes the update fail where another transaction has changed the run's row since the digest was begun.
    """
    try:
        with engine.execution_options(isolation_level="REPEATABLE READ").begin() as connection:
            desired = connection.execute(_CLOSE, {"run": run_id}).scalar()
            if desired is not None:
                closed(connection, run_id, desired)
            return desired is not None
    except OperationalError as error:
        if isinstance(error.orig, SerializationFailure):
            return False
        raise
