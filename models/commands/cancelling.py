"""Cancelling questions: what is recorded of them stays, and nothing follows."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, Connection, Text, bindparam, cast, func, literal, null, or_, update
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.models.schema.seals import EARLIER, question_digest, question_head, step_digest
from cotrail.models.schema.states import UNENDED_STEPS, AttemptOutcome, QuestionStatus, StepState
from cotrail.models.schema.tables import attempts, questions, steps

_ids = bindparam("ids", type_=ARRAY(BigInteger))

_ended_step: dict[str, Any] = {
    "state": literal(StepState.CANCELLED),
    "finished_at": func.now(),
    "lease_until": null(),
}
_cancelled = (
    update(steps)
    .where(steps.c.question_id == func.any(_ids), steps.c.state.in_(UNENDED_STEPS))
    .values(_ended_step | {"digest": step_digest(_ended_step, or_(EARLIER, attempts.c.outcome.is_not(None)))})
    .returning(steps.c.id, steps.c.epoch)
    .cte("cancelled")
)
_CANCEL_STEPS = (
    update(attempts)
    .where(attempts.c.step_id == _cancelled.c.id, attempts.c.epoch == _cancelled.c.epoch, attempts.c.outcome.is_(None))
    .values(outcome=AttemptOutcome.CANCELLED, ended_at=func.now())
)
_ended_question: dict[str, Any] = {
    "status": literal(QuestionStatus.CANCELLED),
    "finished_at": func.now(),
    "ended_by": cast(bindparam("ended_by"), Text),
}
_CANCEL_QUESTIONS = (
    update(questions)
    .where(questions.c.id == func.any(_ids))
    .values(_ended_question | {"digest": question_digest(question_head(), _ended_question)})
)


def cancel_questions(connection: Connection, ids: Sequence[int], ended_by: str | None = None) -> int:
    """Cancel questions, which are locked, and their steps; returns how many.

    ended_by: a limit or a rule that ended them.
    """
    connection.execute(_CANCEL_STEPS, {"ids": ids})
    return connection.execute(_CANCEL_QUESTIONS, {"ids": ids, "ended_by": ended_by}).rowcount
