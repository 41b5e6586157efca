"""Steps that are asked in batches, as the workers see them, and turns of models that compute in a process."""

from collections.abc import Sequence

from sqlalchemy import (
    BigInteger,
    Connection,
    String,
    Text,
    any_,
    bindparam,
    func,
    not_,
    null,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from cotrail.models.execution.claims import ClaimKey
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.batch_tables import batch_items
from cotrail.models.schema.states import AttemptOutcome, StepState
from cotrail.models.schema.tables import ACTIVE, ASKED, SERVED, attempts, runs, steps

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


# Turns: which of the waiting steps begin next where models compute, so that a slow one doesn't hold up the others.

_model = select(runs.c.model_name).where(runs.c.id == steps.c.run_id).scalar_subquery()
_waiting = (
    select(
        *(steps.c[name] for name in ("id", "epoch", "kind", "sequence", "sent_at")),
        _model.label("model"),
        ASKED.label("asked"),
    )
    .where(
        steps.c.kind == bindparam("wanted", type_=String),
        steps.c.state == StepState.READY,
        steps.c.sent_at.is_not(None),
        not_(SERVED),
        ACTIVE,
    )
    .subquery("waiting")
)
# What somebody waits for goes first, whichever model it needs. Within a model, the steps of the messages themselves go
# first, which the queue has put into their order already; then in the same order, by the levels of
# `cotrail.tasks.routing.priority`.
_depth = func.least(_waiting.c.sequence // 2, 3)
_own = _waiting.c.id == any_(bindparam("own", type_=ARRAY(BigInteger)))
_place = func.row_number().over(
    partition_by=_waiting.c.model,
    order_by=(_waiting.c.asked.desc(), _own.desc(), _depth.desc(), _waiting.c.sent_at, _waiting.c.id),
)
_placed = select(_waiting, _place.label("place")).subquery("placed")
_latest_turn = func.array_position(bindparam("latest", type_=ARRAY(String)), _placed.c.model)
_NEXT = (
    select(_placed.c.id, _placed.c.epoch, _placed.c.kind, _placed.c.sequence)
    .order_by(_placed.c.asked.desc(), _placed.c.place, _latest_turn.nulls_first())
    .limit(bindparam("room", type_=BigInteger))
)


def next_in_turn(
    connection: Connection, kind: str, own: Sequence[int], latest: Sequence[str], room: int
) -> list[Dispatch]:
    """Return up to `room` steps of a kind that wait for a model that computes, in the order in which they are to begin.

    own: the steps of the messages that came.
    latest: the models that had a turn, the one whose turn is longest ago first; those that had none go before them.
    """
    parameters = {"wanted": kind, "own": [*own], "latest": [*latest], "room": room}
    return [Dispatch(*row) for row in connection.execute(_NEXT, parameters)]
