"""Statements of the hot path, built once.

All times are the database's: workers' clocks may differ. A statement over many rows takes them as the parameter `rows`
(`cotrail.models.schema.base`), so that its text, and with it its prepared plan, is the same for any number of rows.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert

from cotrail.models.schema.base import insert_rows, recordset
from cotrail.models.schema.deployment import is_own
from cotrail.models.schema.seals import step_digest
from cotrail.models.schema.states import UNENDED_QUESTIONS, UNENDED_STEPS, AttemptOutcome, QuestionStatus, StepState
from cotrail.models.schema.tables import ACTIVE, attempts, paragraph_sets, questions, sentences, steps

_NULLABLE = JSONB(none_as_null=True)


def after(name: str) -> sa.ColumnElement[Any]:
    """Return the time as many seconds from now as the parameter of that name says."""
    return sa.func.now() + sa.func.make_interval(0, 0, 0, 0, 0, 0, sa.bindparam(name, type_=sa.Double))


_CLAIMED = (
    *(steps.c[name] for name in ("id", "epoch", "question_id", "run_id", "kind", "shared_in", "fingerprint", "edit")),
    sa.cast(steps.c.request, sa.TEXT).label("request"),  # decoded one by one: a damaged one must not fail the others
)
_wanted = recordset(steps.c.id, steps.c.epoch)
_messages = recordset(steps.c.id, steps.c.epoch, steps.c.kind)
_claimed = (
    sa.update(steps)
    .where(
        steps.c.id == _messages.c.id,
        steps.c.epoch == _messages.c.epoch,
        steps.c.kind == _messages.c.kind,
        steps.c.state == StepState.READY,
        ACTIVE,
        is_own(),
    )
    .values(
        state=StepState.RUNNING,
        epoch=steps.c.epoch + 1,
        worker=sa.bindparam("worker", type_=sa.String),
        started_at=sa.func.now(),
        lease_until=after("lease_seconds"),
    )
    .returning(*_CLAIMED)
    .cte("claimed")
)
CLAIM = sa.select(_claimed).add_cte(
    insert(attempts)
    .from_select(
        ["step_id", "epoch", "worker"],
        sa.select(_claimed.c.id, _claimed.c.epoch, sa.bindparam("worker", type_=sa.String)),
    )
    .cte("logged")
)
"""Claims ready steps of open questions of active runs whose epoch and kind are those of the message; none where the
database belongs to another version of cotrail.

Each claim counts the epoch up and logs an attempt under it: the epoch is the fencing token of all that follows.
"""

_TOKENS = ("prompt_tokens", "cached_prompt_tokens", "generated_tokens")
_RESULT = ("state", "result", "failure", *_TOKENS, "milliseconds", "adopted_from")
_done = recordset(steps.c.id, steps.c.epoch, *(steps.c[name] for name in _RESULT))
_ending: dict[str, Any] = {
    **{name: _done.c[name] for name in _RESULT},
    "finished_at": sa.func.now(),
    "lease_until": sa.null(),
}
# A step that was given back is ready too, but without such an attempt: its worker may not end it any more.
_ran_out = (
    sa.exists()
    .where(
        attempts.c.step_id == steps.c.id,
        attempts.c.epoch == steps.c.epoch,
        attempts.c.outcome == AttemptOutcome.EXPIRED,
    )
    .correlate(steps)
)
_finished = (
    sa.update(steps)
    .where(
        steps.c.id == _done.c.id,
        steps.c.epoch == _done.c.epoch,
        sa.or_(steps.c.state == StepState.RUNNING, sa.and_(steps.c.state == StepState.READY, _ran_out)),
        is_own(),
    )
    .values(_ending | {"digest": step_digest(_ending)})
    .returning(steps.c.id, steps.c.epoch, steps.c.state, steps.c.question_id)
    .cte("finished")
)
_of_question = steps.alias("of_question")
_open = (
    sa.select(sa.func.count())
    .where(_of_question.c.question_id == _finished.c.question_id, _of_question.c.state.in_(UNENDED_STEPS))
    .scalar_subquery()
)
FINISH = sa.select(_finished.c.id, _finished.c.question_id, _open.label("open")).add_cte(
    sa.update(attempts)
    .where(attempts.c.step_id == _finished.c.id, attempts.c.epoch == _finished.c.epoch)
    .values(outcome=_finished.c.state, ended_at=sa.func.now(), error=sa.null())
    .cte("logged")
)
"""Ends and seals steps under the epoch of their claim. An expired lease matters only once another worker has claimed.

`open` is how many steps of the question had no end before this statement, these included: a statement doesn't see what
its own WITH clauses write.
"""

_held = sa.and_(
    steps.c.id == _wanted.c.id,
    steps.c.epoch == _wanted.c.epoch,
    steps.c.state == StepState.RUNNING,
    steps.c.worker == sa.bindparam("holder", type_=sa.String),
)
# Its message is used up, so it counts as unsent: maintenance sends another one.
_given_back: dict[str, Any] = {
    "state": StepState.READY,
    "sent_at": None,
    "lease_until": None,
    "not_before": after("delay_seconds"),
}
_returned = sa.update(steps).where(_held).values(_given_back).returning(steps.c.id, steps.c.epoch).cte("returned")
GIVE_BACK = sa.select(_returned.c.id).add_cte(
    sa.update(attempts)
    .where(attempts.c.step_id == _returned.c.id, attempts.c.epoch == _returned.c.epoch)
    .values(
        outcome=sa.bindparam("outcome", type_=sa.String),
        ended_at=sa.func.now(),
        error=sa.bindparam("error", type_=_NULLABLE),
    )
    .cte("logged")
)
"""Makes steps that this worker holds ready again; maintenance sends them once `delay_seconds` have passed."""

_blocking = sa.bindparam("blocking", type_=sa.BigInteger)
_decided = sa.and_(
    steps.c.id == _wanted.c.id,
    steps.c.epoch == _wanted.c.epoch,
    steps.c.state.in_([StepState.RUNNING, StepState.READY]),
)
BLOCK = (
    sa.update(questions)
    .where(
        questions.c.id == _blocking,
        questions.c.status.in_(UNENDED_QUESTIONS),
        sa.exists().where(_decided).correlate(questions),
    )
    .values(status=QuestionStatus.BLOCKED, reason=sa.bindparam("reason", type_=JSONB), finished_at=sa.func.now())
)
"""Blocks the question of a step, under the epoch of its claim; another step may have blocked it already."""

BLOCK_STEPS = (
    sa.update(steps)
    .where(steps.c.question_id == _blocking, steps.c.state.in_([StepState.WAITING, StepState.READY]))
    .values(state=StepState.BLOCKED)
)
"""Sets the steps aside of a question that this transaction has blocked, and so holds locked."""

_renewable = (
    sa.select(steps.c.id)
    .where(steps.c.id == _wanted.c.id, steps.c.epoch == _wanted.c.epoch, steps.c.state == StepState.RUNNING)
    .with_for_update(of=steps, key_share=True, skip_locked=True)
    .cte("renewable")
)
_renewed = (
    sa.update(steps)
    .where(steps.c.id == _renewable.c.id)
    .values(lease_until=after("lease_seconds"))
    .returning(steps.c.id)
    .cte("renewed")
)
BEAT = (
    sa.select(steps.c.id, steps.c.epoch, _renewed.c.id.is_not(None).label("renewed"))
    .join_from(steps, _renewed, steps.c.id == _renewed.c.id, isouter=True)
    .where(
        steps.c.id == _wanted.c.id,
        steps.c.epoch == _wanted.c.epoch,
        steps.c.state.in_([StepState.RUNNING, StepState.READY]),
    )
)
"""Renews the leases of steps that a worker holds; returns those whose result would count, as `FINISH` has it.

`renewed` tells whether the lease was extended: a step whose lease expired may be ready again and unclaimed since.

SKIP LOCKED passes over a step that another transaction is changing, such as the commit of its result: a heartbeat locks
many steps, in any order, and would deadlock with commits if it waited for them.
"""

UNHELD = sa.select(*_CLAIMED).where(
    steps.c.id == sa.func.any(sa.bindparam("ids", type_=ARRAY(sa.BigInteger))),
    steps.c.state == StepState.READY,
    sa.exists().where(attempts.c.step_id == steps.c.id, attempts.c.epoch == steps.c.epoch),
)
"""Selects those of these steps that no worker holds and whose last claim has an attempt on record."""


def _of_attempt_before(name: str) -> sa.ColumnElement[Any]:
    before = attempts.c.step_id == steps.c.id, attempts.c.epoch < steps.c.epoch
    return sa.select(attempts.c[name]).where(*before).order_by(attempts.c.epoch.desc()).limit(1).scalar_subquery()


# As the row was before the claim: a step that nobody has executed names no worker and no start.
_deferred = (
    sa.update(steps)
    .where(_held)
    .values(_given_back | {name: _of_attempt_before(name) for name in ("worker", "started_at")})
    .returning(steps.c.id, steps.c.epoch)
    .cte("deferred")
)
DEFER = sa.delete(attempts).where(attempts.c.step_id == _deferred.c.id, attempts.c.epoch == _deferred.c.epoch)
"""Gives steps back that weren't begun; maintenance sends them once `delay_seconds` have passed.

Nothing was executed, so the attempt is deleted. The epoch isn't counted down: the next claim would have the same one,
and this statement, repeated where its answer was lost, would undo that claim.
"""

_failed = attempts.alias("failed")


def since_failure() -> sa.ColumnElement[bool]:
    """Return the condition that an attempt is later than any that failed its step: a retry starts a new count."""
    last = sa.select(sa.func.coalesce(sa.func.max(_failed.c.epoch), 0)).where(
        _failed.c.step_id == attempts.c.step_id, _failed.c.outcome == AttemptOutcome.FAILED
    )
    return attempts.c.epoch > last.scalar_subquery()


RETRIES = sa.select(sa.func.count()).where(
    attempts.c.step_id == sa.bindparam("step_id", type_=sa.BigInteger),
    attempts.c.outcome == AttemptOutcome.RETRIED,
    since_failure(),
)

NEW_SENTENCES = insert_rows(sentences, "step_id", "question_id", "position", "text")
NEW_SETS = insert_rows(paragraph_sets, "step_id", "rank", "question_id", "query", "digest", "paragraph_id", "score")
