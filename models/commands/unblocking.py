"""Unblocking a run's questions once a person has fixed what blocked them."""

from collections.abc import Sequence
from functools import partial

from sqlalchemy import BigInteger, Connection, Engine, bindparam, func, null, update
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.models.commands.chunks import OnProgress, by_chunks, silently, through
from cotrail.models.records.advancing import begin_questions
from cotrail.models.records.maintaining import wake
from cotrail.models.records.runs import FindSystem, Runs
from cotrail.models.schema.conditions import QUESTION_OPEN
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.models.schema.tables import questions, steps

_ids = bindparam("ids", type_=ARRAY(BigInteger))
_UNBLOCK = (
    update(questions)
    .where(questions.c.id == func.any(_ids))
    .values(status=QuestionStatus.OPEN, reason=null(), finished_at=null())
)
_UNBLOCK_STEPS = (
    update(steps)
    .where(steps.c.question_id == func.any(_ids), steps.c.state == StepState.BLOCKED, QUESTION_OPEN)
    .values(state=StepState.WAITING)
)


def unblock(engine: Engine, run_id: str, find_system: FindSystem, report: OnProgress = silently) -> int:
    """Open the blocked questions of a run again, so that they wait for admission; returns how many."""
    chunks = by_chunks(engine, run_id, QuestionStatus.BLOCKED, partial(_unblock, Runs(find_system)))
    done = through(chunks, report)
    if done:
        with engine.begin() as connection:
            wake(connection, run_id)
    return done


def _unblock(plans: Runs, connection: Connection, ids: Sequence[int]) -> int:
    connection.execute(_UNBLOCK, {"ids": ids})
    # The replay may block a question again: its steps then stay blocked.
    begin_questions(connection, plans, ids)
    connection.execute(_UNBLOCK_STEPS, {"ids": ids})
    return len(ids)
