"""Steps that are asked in batches, as the workers see them: they hand requests over, and take the answers later."""

from collections.abc import Sequence

from sqlalchemy import (
    BigInteger,
    Connection,
    String,
    Text,
    bindparam,
    func,
    null,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from cotrail.models.execution.claims import ClaimKey
from cotrail.models.schema.batch_tables import batch_items
from cotrail.models.schema.states import AttemptOutcome, StepState
from cotrail.models.schema.tables import attempts, steps

_id, _epoch = bindparam("of_step", type_=BigInteger), bindparam("of_epoch", type_=BigInteger)
_ids = bindparam("ids", type_=ARRAY(BigInteger))

_held = (
    update(steps)
    .where(
        steps.c.id == _id,
        steps.c.epoch == _epoch,
        steps.c.state == StepState.RUNNING,
        steps.c.worker == bindparam("holder", type_=String),
    )
    .values(state=StepState.BATCHED, lease_until=null(), sent_at=null(), not_before=null())
    .returning(steps.c.id)
    .cte("held")
)
_item = insert(batch_items).from_select(
    ["step_id", "model_name", "body"],
    select(_held.c.id, bindparam("for_model", type_=Text), bindparam("request_body", type_=Text)),
)
_renewed = _item.on_conflict_do_update(
    index_elements=[batch_items.c.step_id],
    set_={
        "model_name": _item.excluded.model_name,
        "body": _item.excluded.body,
        "batch": null(),
        "since": func.now(),
        "returned": 0,
    },
)
_logged = (
    update(attempts)
    .where(attempts.c.step_id == _held.c.id, attempts.c.epoch == _epoch)
    .values(outcome=AttemptOutcome.BATCHED, ended_at=func.now())
)
_HAND_OVER = select(_held.c.id).add_cte(_renewed.cte("renewed"), _logged.cte("logged"))
_ANSWERS = select(batch_items.c.answers).where(batch_items.c.step_id == _id)
_CLEAR = update(batch_items).where(batch_items.c.step_id == func.any(_ids)).values(body=null(), answers=[], returned=0)


def hand_over(connection: Connection, claim: ClaimKey, worker: str, model_name: str, body: str) -> None:
    """Give a step that a worker holds over to the next batch of a model; nothing where it isn't the worker's any more.

    body: the request, as JSON. Answers to earlier requests of the step stay.
    """
    values = {"holder": worker, "for_model": model_name, "request_body": body}
    connection.execute(_HAND_OVER, {"of_step": claim.step_id, "of_epoch": claim.epoch, **values})


def read_answers(connection: Connection, step_id: int) -> tuple[str, ...]:
    """Return what was answered to a step's requests until now, as JSON."""
    return tuple(connection.execute(_ANSWERS, {"of_step": step_id}).scalar() or ())


def clear(connection: Connection, step_ids: Sequence[int]) -> None:
    """Remove requests and answers of steps that have ended, or that are to be asked again."""
    connection.execute(_CLEAR, {"ids": [*step_ids]})
