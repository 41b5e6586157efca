"""Turns: which of the waiting steps begin next where models compute, so that a slow one doesn't hold up the others.

A message of such a step says that one of its kind waits, not which one begins: there are as many messages as steps, and
each has one step claimed. Models take turns, a step each, however many of their steps wait. A question that somebody
asked waits for no turn.
"""

from collections.abc import Sequence

from sqlalchemy import BigInteger, Connection, String, any_, bindparam, func, not_, select
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.conditions import ACTIVE, ASKED, SERVED
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import runs, steps

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
