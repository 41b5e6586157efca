"""Statements over batches and the requests in them, built once; see `cotrail.models.execution.batches`."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from cotrail.models.records.budgets import STOPPED
from cotrail.models.schema.base import recordset
from cotrail.models.schema.service_tables import UNANSWERED, batch_items, batches
from cotrail.models.schema.states import OPEN_BATCHES, UNENDED_QUESTIONS, DesiredState, QuestionStatus, StepState
from cotrail.models.schema.tables import ACTIVE, QUESTION_OPEN, questions, runs, steps

MOST_LOST = 2
"""How often a provider may lose a request, which it may have charged; then a person has to act."""

BYTES_OF_TOKEN = 4
"""About how many bytes of a request are a token."""

MOST_RETURNED = 3
"""How often a request may come back without an answer; then that is its answer, and counts as a failed try."""

TOO_LARGE_SECONDS = 86_400.0
"""How long batches stay small after one was more than the account may have waiting."""

_key, _model, sender = (sa.bindparam(name, type_=sa.Text) for name in ("batch_key", "model", "sending"))
_ids = sa.bindparam("ids", type_=ARRAY(sa.BigInteger))
_waits = sa.and_(batch_items.c.batch.is_(None), UNANSWERED, ACTIVE)


def since(when: sa.ColumnElement[Any]) -> sa.ColumnElement[float]:
    """Return the seconds since then."""
    return sa.cast(sa.func.extract("epoch", sa.func.now() - when), sa.Double)


_of_batch: sa.ColumnElement[bool] = batch_items.c.batch == _key
_of_model = batch_items.c.model_name == _model
_concerned = sa.select(steps.c.run_id).where(_waits, _of_model)
_of_run = steps.c.run_id == runs.c.id
MORE = sa.select(
    sa.exists().where(
        runs.c.batched,
        runs.c.digest.is_(None),
        runs.c.desired_state == DesiredState.ACTIVE,
        sa.or_(runs.c.model_name == _model, runs.c.id.in_(_concerned)),
        sa.not_(STOPPED),
        sa.or_(
            *(
                sa.exists().where(_of_run, QUESTION_OPEN, steps.c.state == state).correlate(runs)
                for state in (StepState.WAITING, StepState.READY, StepState.RUNNING)
            )
        ),
    )
)
"""Tells whether further requests to the model may come that wait for no batch: the runs have steps to carry out."""

WAITING_MODELS = sa.select(batch_items.c.model_name).where(_waits).distinct().order_by(batch_items.c.model_name)
WAITING = (
    sa.select(
        sa.func.count().label("lines"),
        sa.func.sum(sa.func.octet_length(batch_items.c.body)).label("bytes"),
        sa.func.max(since(batch_items.c.since)).label("seconds"),
    )
    .where(_waits, _of_model)
    .having(sa.func.count() > 0)
)
_wanted = sa.select(sa.func.count()).where(batch_items.c.batch == batches.c.key, UNANSWERED).scalar_subquery()
OPEN = (
    sa.select(
        *(batches.c[name] for name in ("key", "model_name", "lines", "provider_id", "created_at")),
        (batches.c.digest != "").label("asked"),
        sa.func.coalesce(since(batches.c.checked_at), since(batches.c.created_at)).label("unchecked"),
        since(batches.c.created_at).label("age"),
        _wanted.label("wanted"),
    )
    .where(batches.c.state.in_(OPEN_BATCHES))
    .order_by(batches.c.created_at, batches.c.key)
)
KNOWN = sa.select(batches.c.provider_id).where(batches.c.provider_id.is_not(None))
SMALLEST = sa.select(sa.func.min(batches.c.lines)).where(
    batches.c.model_name == _model, batches.c.too_large, since(batches.c.created_at) < TOO_LARGE_SECONDS
)
FULL = sa.select(sa.func.min(since(batches.c.ended_at))).where(
    batches.c.model_name == _model, batches.c.too_large, batches.c.lines == 1
)

TAKE = (
    sa.select(batch_items.c.step_id, sa.func.octet_length(batch_items.c.body))
    .where(_waits, _of_model)
    .order_by(batch_items.c.step_id)
    .limit(sa.bindparam("room", type_=sa.BigInteger))
    .with_for_update(of=batch_items)
)
ASSIGN = sa.update(batch_items).where(batch_items.c.step_id == sa.func.any(_ids)).values(batch=_key)
LINES = (
    sa.select(batch_items.c.step_id, batch_items.c.body).where(_of_batch, UNANSWERED).order_by(batch_items.c.step_id)
)
UNANSWERED_STEPS = sa.select(batch_items.c.step_id).where(_of_batch, UNANSWERED).order_by(batch_items.c.step_id)
of_key = batches.c.key == _key
OWN = sa.update(batches).where(of_key, batches.c.sender == sender, batches.c.provider_id.is_(None))

_answers = recordset(sa.column("id", sa.BigInteger), sa.column("answer", sa.Text))
_in_batch = (
    sa.select(steps.c.id, _answers.c.answer)
    .where(steps.c.id == _answers.c.id, _of_batch, UNANSWERED)
    .order_by(steps.c.id)
    .with_for_update(of=steps)
    .cte("in_batch")
)
_stored = (
    sa.update(batch_items)
    .where(batch_items.c.step_id == _in_batch.c.id)
    .values(answers=sa.func.array_append(batch_items.c.answers, _in_batch.c.answer), body=sa.null(), returned=0)
    .returning(batch_items.c.step_id)
    .cte("stored")
)
_made_ready = (
    sa.update(steps)
    .where(steps.c.id == _in_batch.c.id)
    .values(
        # While this step waited, another one may have blocked their question.
        state=sa.case((QUESTION_OPEN, sa.literal(StepState.READY)), else_=sa.literal(StepState.BLOCKED)),
        sent_at=sa.null(),
        not_before=sa.null(),
    )
)
DELIVER = sa.select(sa.func.count()).select_from(_in_batch).add_cte(_stored, _made_ready.cte("made_ready"))
RETURN = (
    sa.update(batch_items)
    .where(_of_batch, batch_items.c.body.is_not(None), batch_items.c.step_id == sa.func.any(_ids))
    .values(batch=sa.null(), since=sa.func.now(), returned=batch_items.c.returned + 1)
    .returning(batch_items.c.step_id)
)
LOSE = (
    sa.update(batch_items)
    .where(_of_batch, batch_items.c.body.is_not(None), batch_items.c.step_id == sa.func.any(_ids))
    .values(
        lost=batch_items.c.lost + 1,
        lost_tokens=batch_items.c.lost_tokens + sa.func.octet_length(batch_items.c.body) / BYTES_OF_TOKEN,
    )
    .returning(batch_items.c.step_id, batch_items.c.lost)
)
COUNT = (
    sa.update(batches)
    .where(of_key)
    .values(
        answered=batches.c.answered + sa.bindparam("more_answered", type_=sa.BigInteger),
        unanswered=batches.c.unanswered + sa.bindparam("more_unanswered", type_=sa.BigInteger),
    )
)
RETURNED_TOO_OFTEN = sa.select(batch_items.c.step_id).where(
    _of_batch, batch_items.c.body.is_not(None), batch_items.c.returned >= MOST_RETURNED
)
QUESTIONS = (
    sa.select(questions.c.id)
    .where(
        questions.c.status.in_(UNENDED_QUESTIONS),
        questions.c.id.in_(sa.select(steps.c.question_id).where(_of_batch, UNANSWERED)),
    )
    .order_by(questions.c.id)
    .with_for_update(key_share=True)
)
BLOCK = (
    sa.update(questions)
    .where(questions.c.id == sa.func.any(_ids))
    .values(status=QuestionStatus.BLOCKED, reason=sa.bindparam("reason", type_=JSONB), finished_at=sa.func.now())
)
BLOCK_STEPS = (
    sa.update(steps)
    .where(
        steps.c.question_id == sa.func.any(_ids),
        sa.or_(
            steps.c.state.in_([StepState.WAITING, StepState.READY]),
            sa.and_(
                steps.c.state == StepState.BATCHED, sa.exists().where(batch_items.c.step_id == steps.c.id, _of_batch)
            ),
        ),
    )
    .values(state=StepState.BLOCKED)
)
MISSING_SECONDS = sa.select(since(batches.c.missing_since)).where(of_key)
RELEASE = (
    sa.update(batch_items)
    .where(_of_batch, batch_items.c.body.is_not(None))
    .values(batch=sa.null(), since=sa.func.now())
)
