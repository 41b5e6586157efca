"""Recovery of steps: expired leases, steps that weren't sent, lost messages, and poison messages.

A poison message is a step that kills its workers. Steps that ran at the same time die with it, so after several such
deaths a step is only a suspect. Suspects are sent in halves, those that have died most often first: whatever half the
culprit is in dies once more, and the other one is sent behind it. So it is found among n of them in about log2(n)
deaths, and nothing is set aside but what has died alone among the suspects.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from cotrail.models.execution.statements import after, since_failure
from cotrail.models.records.steps import DESCRIBED, Dispatch, described
from cotrail.models.schema.states import AttemptOutcome, StepState
from cotrail.models.schema.tables import ACTIVE, SERVED, attempts, runs, steps

SUSPECT_EXPIRIES = 2
"""The number of executions ended by an expired lease that makes a step a suspect."""

SUSPECT_SEQUENCE = 1_000_000
"""The sequence that a suspect's message claims, and with it the highest priority: further suspects wait for it."""

_due = sa.and_(steps.c.state == StepState.READY, sa.func.coalesce(steps.c.not_before <= sa.func.now(), True))
_ready = sa.and_(_due, steps.c.kind == sa.bindparam("wanted", type_=sa.String))

_deaths = sa.func.count().filter(attempts.c.outcome == AttemptOutcome.EXPIRED, since_failure())
_died: Any = sa.select(_deaths).where(attempts.c.step_id == steps.c.id).correlate(steps).scalar_subquery()
# The epoch bounds the attempts and is in the row itself: most steps are no suspects by that alone.
_suspect = sa.and_(steps.c.epoch >= SUSPECT_EXPIRIES, _died >= SUSPECT_EXPIRIES)
_at_large = sa.select(
    sa.or_(
        sa.exists().where(steps.c.state == StepState.RUNNING, _suspect),
        sa.exists().where(steps.c.state == StepState.READY, steps.c.sent_at.is_not(None), ACTIVE, _suspect),
    )
)
"""Tells whether a suspect is being executed, or its message is in a queue."""

_overstayed = (
    sa.select(steps.c.id)
    .where(steps.c.state == StepState.RUNNING, steps.c.lease_until < sa.func.now())
    .with_for_update(skip_locked=True)
    .subquery("overstayed")
)
_expired = (
    sa.update(steps)
    .where(steps.c.id == _overstayed.c.id)
    .values(state=StepState.READY, sent_at=None, lease_until=None)
    .returning(steps.c.id, steps.c.epoch)
    .cte("expired")
)
_EXPIRE = sa.select(_expired.c.id).add_cte(
    sa.update(attempts)
    .where(attempts.c.step_id == _expired.c.id, attempts.c.epoch == _expired.c.epoch, attempts.c.outcome.is_(None))
    .values(outcome=AttemptOutcome.EXPIRED, ended_at=sa.func.now())
    .cte("logged")
)


def _sent(*which: Any, oldest: Any) -> Any:
    """Return the statement that marks up to `room` of these steps as sent, the `oldest` first.

    SKIP LOCKED: a step that another transaction has locked is just changing, and needn't be sent.
    """
    chosen = (
        sa.select(steps.c.id)
        .where(ACTIVE, *which)
        .order_by(oldest)
        .limit(sa.bindparam("room", type_=sa.BigInteger))
        .with_for_update(of=steps, skip_locked=True)
        .subquery("chosen")
    )
    return sa.update(steps).where(steps.c.id == chosen.c.id).values(sent_at=sa.func.now()).returning(*DESCRIBED)


_overdue = steps.c.sent_at < after("patience")
_unsent = steps.c.sent_at.is_(None)
_SEND_NEW = _sent(_ready, _unsent, sa.not_(_suspect), oldest=steps.c.id)
_asked_for = sa.func.array_position(sa.bindparam("served", type_=sa.ARRAY(sa.Boolean)), SERVED).is_not(None)
_SEND_AGAIN = _sent(_ready, _overdue, _asked_for, oldest=steps.c.sent_at)
_least = sa.bindparam("least", type_=sa.BigInteger)
_SEND_SUSPECTS = _sent(_due, _unsent, _suspect, _died >= _least, oldest=steps.c.id)
_SUSPECTS = (
    sa.select(_died.label("deaths"), sa.func.count().label("number"))
    .where(_due, _unsent, ACTIVE, _suspect)
    .group_by(sa.text("deaths"))
    .order_by(sa.text("deaths DESC"))
)
_last: Any = (
    sa.select(sa.func.max(attempts.c.epoch)).where(attempts.c.step_id == steps.c.id).correlate(steps).scalar_subquery()
)
_DEAD = sa.select(steps.c.id, attempts.c.started_at, attempts.c.ended_at).where(
    steps.c.state == StepState.READY,
    ACTIVE,
    steps.c.epoch > SUSPECT_EXPIRIES,
    _died > SUSPECT_EXPIRIES,
    attempts.c.step_id == steps.c.id,
    attempts.c.epoch == _last,
    attempts.c.outcome == AttemptOutcome.EXPIRED,
)
"""Those that were suspects as they last died, and when that was."""

_WAITING = sa.select(sa.func.count().filter(_overdue).label("overdue"), sa.func.count().label("waiting")).where(
    _ready, ACTIVE, _asked_for, steps.c.sent_at.is_not(None)
)

_kinds = (
    sa.func.unnest(sa.bindparam("kinds", type_=sa.ARRAY(sa.String))).table_valued("kind", name="asked").render_derived()
)
_is_ready = sa.and_(steps.c.kind == _kinds.c.kind, steps.c.state == StepState.READY)
# In two parts, as each has a partial index of its own.
_READY_KINDS = sa.select(_kinds.c.kind).where(
    sa.or_(sa.exists().where(_is_ready, _unsent), sa.exists().where(_is_ready, steps.c.sent_at.is_not(None)))
)


def cancelled_steps(connection: sa.Connection, run_id: str) -> set[int]:
    """Return the cancelled steps of a run whose messages may be in a queue."""
    cancelled = steps.c.state == StepState.CANCELLED, steps.c.sent_at.is_not(None)
    return set(connection.execute(sa.select(steps.c.id).where(steps.c.run_id == run_id, *cancelled)).scalars())


def expire_leases(connection: sa.Connection) -> list[int]:
    """Make steps with an expired lease ready again; returns their ids.

    A locked step is passed over: its worker is committing just now, or was frozen as it did.
    """
    return list(connection.execute(_EXPIRE).scalars())


def is_idle(connection: sa.Connection) -> bool:
    """Return whether all runs are over and sealed."""
    return not connection.execute(sa.select(sa.exists().where(runs.c.digest.is_(None)))).scalar_one()


def ready_kinds(connection: sa.Connection, kinds: Iterable[str]) -> list[str]:
    """Return those of these kinds that have a ready step, sent or not: the others need no repair."""
    return list(connection.execute(_READY_KINDS, {"kinds": [*kinds]}).scalars())


def take_unsent(connection: sa.Connection, kind: str, room: int) -> list[Dispatch]:
    """Mark up to `room` due steps of a kind as sent that weren't, except suspects; returns their messages."""
    return [described(*row) for row in connection.execute(_SEND_NEW, {"wanted": kind, "room": max(room, 0)})]


def take_suspects(connection: sa.Connection, *, at_once: bool = False) -> list[Dispatch]:
    """Mark half of the due suspects with the most deaths as sent, unless others are on their way or being executed.

    at_once: all suspects instead, as a culprit was found, whose end they may have shared. Returns their messages.
    """
    if connection.execute(_at_large).scalar_one():
        return []
    suspects = connection.execute(_SUSPECTS).all()
    if not suspects:
        return []
    deaths, number = suspects[0]
    chosen = (
        {"least": SUSPECT_EXPIRIES, "room": sum(count for _, count in suspects)}
        if at_once
        else {"least": deaths, "room": max(1, number // 2)}
    )
    sent = connection.execute(_SEND_SUSPECTS, chosen)
    return [replace(described(*row), sequence=SUSPECT_SEQUENCE) for row in sent]


def take_lost(
    connection: sa.Connection, kind: str, queued: int, patience_seconds: float, served: Sequence[bool] = (False, True)
) -> list[Dispatch]:
    """Return messages of a queue to send again, as they seem lost: more steps wait than the queue holds messages.

    queued: how many messages the queue holds; patience_seconds: after how long an unclaimed step is overdue.
    served: whether the queue is that of runs whose model is served, of the others, or of both.
    The longest overdue come first. Sending is idempotent: the claim of a second message finds nothing to do.
    """
    parameters = {"wanted": kind, "patience": -patience_seconds, "served": [*served]}
    waiting = connection.execute(_WAITING, parameters).one()
    # Never more than the queue lacks: in one that is only long, all the messages are there.
    room = min(waiting.overdue, waiting.waiting - queued)
    if room <= 0:
        return []
    return [described(*row) for row in connection.execute(_SEND_AGAIN, {**parameters, "room": room})]


def exhausted(connection: sa.Connection, step_ids: Sequence[int], max_attempts: int) -> list[int]:
    """Return those of these steps, which have just died, whose leases expired so often that they aren't tried again.

    A suspect has at least one more try, whatever `max_attempts`, and one that no suspect shares: another step may have
    killed its workers. Where one that was sent with it hasn't ended yet, this isn't known.
    """
    least = max(max_attempts, SUSPECT_EXPIRIES + 1)
    query = sa.select(attempts.c.step_id).where(attempts.c.step_id.in_(step_ids)).group_by(attempts.c.step_id)
    often = set(connection.execute(query.having(_deaths >= least)).scalars())
    if not often or connection.execute(_at_large).scalar_one():
        return []
    dead = connection.execute(_DEAD).all()
    return [
        one.id
        for one in dead
        if one.id in often
        and not any(
            other.id != one.id and other.started_at <= one.ended_at and one.started_at <= other.ended_at
            for other in dead
        )
    ]
