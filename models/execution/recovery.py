"""What the maintenance process repairs and completes.

Leases that ran out, and steps that weren't sent or whose message was lost.

A step whose workers died several times may be what they died of, and whatever ran beside it died with them. Such
suspects are sent one at a time: the culprit meets no other suspect again, so that they don't share its end.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Connection, String, and_, bindparam, exists, func, not_, or_, select, update

from models.execution.statements import after, since_failure
from models.records.dispatch import Dispatch
from models.schema.conditions import ACTIVE
from models.schema.states import AttemptOutcome, StepState
from models.schema.tables import attempts, steps

SUSPECT = 2
"""After how many executions that ended without a sign of life a step is a suspect."""

FARTHEST = 1_000_000
"""How far a suspect's question counts as, so that the other suspects don't wait for the whole queue."""

_due = and_(steps.c.state == StepState.READY, func.coalesce(steps.c.not_before <= func.now(), True))
_ready = and_(_due, steps.c.kind == bindparam("wanted", type_=String))

_deaths = func.count().filter(attempts.c.outcome == AttemptOutcome.EXPIRED, since_failure())
_suspect = and_(
    steps.c.epoch >= SUSPECT,
    select(_deaths).where(attempts.c.step_id == steps.c.id).correlate(steps).scalar_subquery() >= SUSPECT,
)
_at_large = select(
    or_(
        exists().where(steps.c.state == StepState.RUNNING, _suspect),
        exists().where(steps.c.state == StepState.READY, steps.c.sent_at.is_not(None), ACTIVE, _suspect),
    )
)
"""Whether a suspect is being executed, or is about to be."""

_overstayed = (
    select(steps.c.id)
    .where(steps.c.state == StepState.RUNNING, steps.c.lease_until < func.now())
    .with_for_update(skip_locked=True)
    .subquery("overstayed")
)
_expired = (
    update(steps)
    .where(steps.c.id == _overstayed.c.id)
    .values(state=StepState.READY, sent_at=None, lease_until=None)
    .returning(steps.c.id, steps.c.epoch)
    .cte("expired")
)
_EXPIRE = select(_expired.c.id).add_cte(
    update(attempts)
    .where(attempts.c.step_id == _expired.c.id, attempts.c.epoch == _expired.c.epoch, attempts.c.outcome.is_(None))
    .values(outcome=AttemptOutcome.EXPIRED, ended_at=func.now())
    .cte("logged")
)


def _sent(*which: Any, oldest: Any) -> Any:
    """Marks up to `room` of these steps as sent, the `oldest` first, and returns their messages."""
    chosen = (
        select(steps.c.id)
        .where(ACTIVE, *which)
        .order_by(oldest)
        .limit(bindparam("room", type_=BigInteger))
        .with_for_update(of=steps, skip_locked=True)
        .subquery("chosen")
    )
    return (
        update(steps)
        .where(steps.c.id == chosen.c.id)
        .values(sent_at=func.now())
        .returning(steps.c.id, steps.c.epoch, steps.c.kind, steps.c.sequence)
    )


_overdue = steps.c.sent_at < after("patience")
_unsent = steps.c.sent_at.is_(None)
_SEND_NEW = _sent(_ready, _unsent, not_(_suspect), oldest=steps.c.id)
_SEND_AGAIN = _sent(_ready, _overdue, oldest=steps.c.sent_at)
_SEND_SUSPECT = _sent(_due, _unsent, _suspect, oldest=steps.c.id)
_WAITING = select(func.count().filter(_overdue).label("overdue"), func.count().label("waiting")).where(
    _ready, ACTIVE, steps.c.sent_at.is_not(None)
)

_kinds = func.unnest(bindparam("kinds", type_=ARRAY(String))).table_valued("kind", name="asked").render_derived()
_is_ready = and_(steps.c.kind == _kinds.c.kind, steps.c.state == StepState.READY)
# Each part by the partial index of its own.
_READY_KINDS = select(_kinds.c.kind).where(
    or_(exists().where(_is_ready, _unsent), exists().where(_is_ready, steps.c.sent_at.is_not(None)))
)


def cancelled_steps(connection: Connection, run_id: str) -> set[int]:
    """The steps of a run that were cancelled and whose messages may be in a queue."""
    cancelled = steps.c.state == StepState.CANCELLED, steps.c.sent_at.is_not(None)
    return set(connection.execute(select(steps.c.id).where(steps.c.run_id == run_id, *cancelled)).scalars())


def expire_leases(connection: Connection) -> list[int]:
    """Makes the steps ready again whose workers gave no sign of life; returns their ids.

    A step that is locked is passed over: its worker is committing just now, or was frozen as it did.
    """
    return list(connection.execute(_EXPIRE).scalars())


def ready_kinds(connection: Connection, kinds: Iterable[str]) -> list[str]:
    """Those of these kinds of which any step is ready, sent or not: the others need no repair."""
    return list(connection.execute(_READY_KINDS, {"kinds": [*kinds]}).scalars())


def take_unsent(connection: Connection, kind: str, room: int) -> list[Dispatch]:
    """Up to `room` ready steps of a kind that are due and unsent; from now on they count as sent. No suspects."""
    return [Dispatch(*row) for row in connection.execute(_SEND_NEW, {"wanted": kind, "room": max(room, 0)})]


def take_suspect(connection: Connection) -> list[Dispatch]:
    """A suspect that is due, unless another one is on its way or being executed; its message goes before all others."""
    if connection.execute(_at_large).scalar_one():
        return []
    sent = connection.execute(_SEND_SUSPECT, {"room": 1})
    return [Dispatch(step_id, epoch, kind, sequence=FARTHEST) for step_id, epoch, kind, _ in sent]


def take_lost(connection: Connection, kind: str, queued: int, patience_seconds: float) -> list[Dispatch]:
    """Steps of a kind whose message seems lost: overdue, and more steps wait than the queue holds messages.

    queued: how many messages the queue holds; patience_seconds: when an unclaimed step is overdue.
    The longest overdue come first. A message sent twice costs a claim that finds nothing.
    """
    parameters = {"wanted": kind, "patience": -patience_seconds}
    waiting = connection.execute(_WAITING, parameters).one()
    room = min(waiting.overdue, waiting.waiting - queued)
    if room <= 0:
        return []
    return [Dispatch(*row) for row in connection.execute(_SEND_AGAIN, {**parameters, "room": room})]


def exhausted(connection: Connection, step_ids: Sequence[int], max_attempts: int) -> list[int]:
    """Those of these steps whose executions ended so often without a sign of life that they aren't tried again.

    A suspect has one more chance at least, whatever is asked for: its end may have been another's doing.
    """
    query = select(attempts.c.step_id).where(attempts.c.step_id.in_(step_ids)).group_by(attempts.c.step_id)
    return list(connection.execute(query.having(_deaths >= max(max_attempts, SUSPECT + 1))).scalars())
