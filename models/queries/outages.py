"""Outages that hold a run back: servers that its steps need and that didn't answer the last time."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Row, bindparam, func, select

from cotrail.core.actions.kind import engine_of
from cotrail.core.actions.registry import KINDS
from cotrail.models.schema.states import AttemptOutcome, QuestionStatus, StepState
from cotrail.models.schema.tables import attempts, questions, steps


class Outage(Struct, frozen=True, kw_only=True):
    """A server that is away and holds steps of a run back.

    message: the error of the latest trial; steps: the number that wait; since: when it was first found away;
    next_seconds: in how many seconds the next trial is due, 0 where it is under way.
    """

    what: str
    message: str
    steps: int
    since: datetime
    next_seconds: float


_HELD_STEPS = (
    select(
        steps.c.kind,
        attempts.c.ended_at,
        attempts.c.error["message"].astext.label("message"),
        func.greatest(func.extract("epoch", steps.c.not_before - func.now()), 0.0).label("seconds"),
    )
    .join_from(steps, questions, steps.c.question_id == questions.c.id)
    .join(attempts, attempts.c.step_id == steps.c.id)
    .where(
        steps.c.run_id == bindparam("run"),
        questions.c.run_id == bindparam("run"),  # implied by the line above, and opens the index that has the open ones
        steps.c.state.in_([StepState.READY, StepState.RUNNING]),
        questions.c.status == QuestionStatus.OPEN,
        attempts.c.outcome == AttemptOutcome.UNAVAILABLE,
    )
    .order_by(attempts.c.ended_at)
)
_KINDS = (
    select(
        steps.c.kind,
        func.count()
        .filter(steps.c.state == StepState.READY, questions.c.status == QuestionStatus.OPEN)
        .label("waiting"),
        func.max(steps.c.finished_at).filter(steps.c.state == StepState.FINISHED).label("answered"),
    )
    .join_from(steps, questions, steps.c.question_id == questions.c.id)
    .where(steps.c.run_id == bindparam("run"))
    .group_by(steps.c.kind)
)


def read_outages(connection: Connection, run_id: str) -> tuple[Outage, ...]:
    """Return the servers that have been away since they last answered a step of the run."""
    held = connection.execute(_HELD_STEPS, {"run": run_id}).all()
    if not held:
        return ()
    kinds = connection.execute(_KINDS, {"run": run_id}).all()
    away = dict.fromkeys(_needed(row.kind) for row in held)
    outages = (_outage(what, _of(what, held), _of(what, kinds)) for what in away)
    return tuple(outage for outage in outages if outage)


def _of(what: str, rows: Iterable[Row[*tuple[Any, ...]]]) -> list[Any]:
    return [row for row in rows if _needed(row.kind) == what]


def _needed(kind: str) -> str:
    # A later release may have recorded steps of a kind that this one doesn't know.
    return KINDS[kind].needed_by_all if kind in KINDS else engine_of(kind)


def _outage(what: str, held: list[Any], kinds: list[Any]) -> Outage | None:
    answered = max((row.answered for row in kinds if row.answered), default=None)
    met = [row for row in held if answered is None or row.ended_at > answered]
    if not met:
        return None
    return Outage(
        what=what,
        message=met[-1].message,
        steps=sum(row.waiting for row in kinds),
        since=met[0].ended_at,
        next_seconds=float(min(row.seconds for row in met)),
    )
