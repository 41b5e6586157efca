"""Work of a run's steps: what was computed for it, what it adopted, and executions that gave no result."""

from typing import Any

from msgspec import Struct
from sqlalchemy import BigInteger, Connection, Text, bindparam, cast, func, select

from cotrail.models.schema.batch_tables import batch_items
from cotrail.models.schema.states import AttemptOutcome, StepState
from cotrail.models.schema.tables import attempts, questions, steps


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


def read_work_by_question(connection: Connection, run_id: str) -> list[tuple[int, str, KindWork]]:
    """Return the same for each question of a run that has ended steps: its row's id, its own id, and the work."""
    rows = connection.execute(_WORK_BY_QUESTION, {"run": run_id}).mappings()
    return [
        (row["id"], row["key"], KindWork(**{name: row[name] for name in KindWork.__struct_fields__})) for row in rows
    ]


def read_lost(connection: Connection, run_id: str) -> list[LostExecutions]:
    """Return the executions without a result, by outcome; empty where every step was executed once and finished."""
    return [LostExecutions(**row) for row in connection.execute(_LOST, {"run": run_id}).mappings()]


def read_lost_requests(connection: Connection, run_id: str) -> tuple[int, int]:
    """Return how many requests of a run providers lost with their batches, and about how many tokens they had."""
    row = connection.execute(_LOST_REQUESTS, {"run": run_id}).one()
    return row[0], row[1]


def _total(name: str) -> Any:
    finished = func.sum(steps.c[name]).filter(steps.c.state == StepState.FINISHED)
    return cast(func.coalesce(finished, 0), steps.c[name].type).label(name)


_run = bindparam("run", type_=Text)
_adopted = steps.c.adopted_from.is_not(None)
_work = (
    steps.c.kind,
    _adopted.label("adopted"),
    func.count().label("steps"),
    *(_total(name) for name in ("prompt_tokens", "cached_prompt_tokens", "generated_tokens", "milliseconds")),
)
_ended = steps.c.run_id == _run, steps.c.state.in_([StepState.FINISHED, StepState.FAILED])
_WORK = select(*_work).where(*_ended).group_by(steps.c.kind, _adopted).order_by(steps.c.kind, _adopted)
_WORK_BY_QUESTION = (
    select(questions.c.id, questions.c.key, *_work)
    .join_from(steps, questions, steps.c.question_id == questions.c.id)
    .where(*_ended)
    .group_by(questions.c.id, steps.c.kind, _adopted)
    .order_by(questions.c.id, steps.c.kind, _adopted)
)

_LOST_REQUESTS = (
    select(*(cast(func.coalesce(func.sum(batch_items.c[name]), 0), BigInteger) for name in ("lost", "lost_tokens")))
    .join_from(batch_items, steps, batch_items.c.step_id == steps.c.id)
    .where(steps.c.run_id == _run, batch_items.c.lost > 0)
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
