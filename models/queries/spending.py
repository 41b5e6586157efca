"""Work of a run's steps: what was computed for it, what it adopted, and executions that gave no result."""

from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Text, bindparam, cast, func, select

from cotrail.models.schema.states import AttemptOutcome, StepState
from cotrail.models.schema.tables import attempts, steps


class KindWork(Struct, frozen=True, kw_only=True):
    """The ended steps of one kind that were adopted, or those that weren't.

    milliseconds: of those that have a result, when they were computed, as their tokens.
    """

    kind: str
    adopted: bool
    steps: int
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    milliseconds: float


class LostExecutions(Struct, frozen=True, kw_only=True):
    """Executions of a run's steps that ended without a result, in the same way; seconds: their sum."""

    outcome: str
    executions: int
    seconds: float


def read_work(connection: Connection, run_id: str) -> list[KindWork]:
    """Return the work of a run's steps, by kind and by whether they were adopted."""
    return [KindWork(**row) for row in connection.execute(_WORK, {"run": run_id}).mappings()]


def read_lost(connection: Connection, run_id: str) -> list[LostExecutions]:
    """Return the executions without a result, by outcome; empty where every step was executed once and finished."""
    return [LostExecutions(**row) for row in connection.execute(_LOST, {"run": run_id}).mappings()]


def _total(name: str) -> Any:
    finished = func.sum(steps.c[name]).filter(steps.c.state == StepState.FINISHED)
    return cast(func.coalesce(finished, 0), steps.c[name].type).label(name)


_run = bindparam("run", type_=Text)
_adopted = steps.c.adopted_from.is_not(None)
_WORK = (
    select(
        steps.c.kind,
        _adopted.label("adopted"),
        func.count().label("steps"),
        *(_total(name) for name in ("prompt_tokens", "cached_prompt_tokens", "generated_tokens", "milliseconds")),
    )
    .where(steps.c.run_id == _run, steps.c.state.in_([StepState.FINISHED, StepState.FAILED]))
    .group_by(steps.c.kind, _adopted)
    .order_by(steps.c.kind, _adopted)
)

_took = func.extract("epoch", attempts.c.ended_at - attempts.c.started_at)
_LOST = (
    select(
        attempts.c.outcome,
        func.count().label("executions"),
        cast(func.coalesce(func.sum(_took), 0), steps.c.milliseconds.type).label("seconds"),
    )
    .join_from(attempts, steps, attempts.c.step_id == steps.c.id)
    # A fork copies failures together with the step, and didn't spend them.
    .where(
        steps.c.run_id == _run,
        attempts.c.outcome != AttemptOutcome.FINISHED,
        ~(_adopted & (attempts.c.outcome == AttemptOutcome.FAILED)),
    )
    .group_by(attempts.c.outcome)
    .order_by(attempts.c.outcome)
)
