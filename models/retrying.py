"""Trying questions again that failed or are blocked."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import BigInteger, Connection, Engine, bindparam, func, null, select, update
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on

from models.control import lock_run, unblock, wake
from models.seals import amending
from models.tables import QuestionStatus, StepState, attempts, questions, runs, steps

CHUNK = 1000
"""How many questions a statement takes at most."""


class Retried(Struct, frozen=True, kw_only=True):
    """How many questions are open again; stuck: failed ones that nothing can be done for."""

    failed: int = 0
    blocked: int = 0
    stuck: int = 0


_ids = bindparam("ids", type_=ARRAY(BigInteger))
_latest = (
    select(steps.c.question_id, steps.c.previous)
    .where(steps.c.question_id == func.any(_ids))
    .ext(distinct_on(steps.c.question_id))
    .order_by(steps.c.question_id, steps.c.sequence.desc())
    .subquery("latest")
)
_FAILED = (
    # Those that were yielded together with the last step: an earlier failure was caught, and others rest on it.
    select(steps.c.id, steps.c.question_id)
    .where(
        steps.c.question_id == _latest.c.question_id,
        steps.c.previous == _latest.c.previous,
        steps.c.state == StepState.FAILED,
    )
    .with_for_update(of=steps)
)
_KEEP_FAILURES = (
    update(attempts)
    .where(attempts.c.step_id == steps.c.id, attempts.c.epoch == steps.c.epoch, steps.c.id == func.any(_ids))
    .values(error=steps.c.failure)
)
_ENDED = ("failure", "finished_at", "milliseconds", "adopted_from", "digest")
_EMPTY = dict.fromkeys((*_ENDED, "sent_at", "not_before"), null())
_REOPEN_STEPS = update(steps).where(steps.c.id == func.any(_ids)).values(_EMPTY | {"state": StepState.READY})
_OPEN: dict[str, Any] = {"status": QuestionStatus.OPEN, "reason": null(), "finished_at": null(), "digest": null()}
_REOPEN_QUESTIONS = update(questions).where(questions.c.id == func.any(_ids)).values(_OPEN)


def retry(engine: Engine, run_id: str, *, failed: bool, blocked: bool) -> Retried:
    """Opens failed questions, blocked ones, or both again; raises UnknownNameError, InputError.

    The step that failed is executed again; what failed before stays in `attempts`.
    """
    with engine.begin() as connection:
        lock_run(connection, run_id)
        amending(connection)
        unblocked = unblock(connection, run_id) if blocked else 0
        reopened, found = _reopen(connection, run_id) if failed else (0, 0)
        if reopened:
            connection.execute(update(runs).where(runs.c.id == run_id).values(digest=None))
        wake(connection, run_id)
    return Retried(failed=reopened, blocked=unblocked, stuck=found - reopened)


def _reopen(connection: Connection, run_id: str) -> tuple[int, int]:
    """Opens a run's failed questions again; returns how many, and how many there are."""
    of_run = questions.c.run_id == run_id, questions.c.status == QuestionStatus.FAILED
    query = select(questions.c.id).where(*of_run).order_by(questions.c.id).with_for_update(key_share=True)
    ids = connection.execute(query).scalars().all()
    reopened = sum(_reopen_chunk(connection, ids[start : start + CHUNK]) for start in range(0, len(ids), CHUNK))
    return reopened, len(ids)


def _reopen_chunk(connection: Connection, ids: Sequence[int]) -> int:
    failed = connection.execute(_FAILED, {"ids": ids}).all()
    step_ids = [row.id for row in failed]
    question_ids = sorted({row.question_id for row in failed})
    connection.execute(_KEEP_FAILURES, {"ids": step_ids})
    connection.execute(_REOPEN_STEPS, {"ids": step_ids})
    connection.execute(_REOPEN_QUESTIONS, {"ids": question_ids})
    return len(question_ids)
