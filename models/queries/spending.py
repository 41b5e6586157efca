"""Work of a run's steps: what was computed for it, what it adopted, and executions that gave no result."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.core.binding import MODEL
from cotrail.core.money import RatedUsage, Spent, Usage, spent, thresholds
from cotrail.models.records.runs import PRICES, read_prices
from cotrail.models.schema.service_tables import batch_items
from cotrail.models.schema.states import AttemptOutcome, StepState
from cotrail.models.schema.tables import attempts, questions, runs, steps


class KindTotals(Struct, frozen=True, kw_only=True):
    """What steps of one kind took together that have a result: their tokens, and how long they were computed."""

    kind: str
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    milliseconds: float


class KindWork(KindTotals, frozen=True, kw_only=True):
    """The ended steps of one kind that were adopted, or those that weren't."""

    adopted: bool
    steps: int


class LostExecutions(Struct, frozen=True, kw_only=True):
    """Executions of a run's steps that ended without a result, in the same way; seconds: their sum."""

    outcome: str
    executions: int
    seconds: float


def read_work(connection: sa.Connection, run_id: str) -> list[KindWork]:
    """Return the work of a run's steps, by kind and by whether they were adopted."""
    return [KindWork(**row) for row in connection.execute(_WORK, {"run": run_id}).mappings()]


def read_work_by_question(connection: sa.Connection, run_id: str) -> list[tuple[int, str, KindWork]]:
    """Return the same for each question of a run that has ended steps: its row's id, its own id, and the work."""
    rows = connection.execute(_WORK_BY_QUESTION, {"run": run_id}).mappings()
    return [
        (row["id"], row["key"], KindWork(**{name: row[name] for name in KindWork.__struct_fields__})) for row in rows
    ]


def read_lost(connection: sa.Connection, run_id: str) -> list[LostExecutions]:
    """Return the executions without a result, by outcome; empty where every step was executed once and finished."""
    return [LostExecutions(**row) for row in connection.execute(_LOST, {"run": run_id}).mappings()]


def read_lost_requests(connection: sa.Connection, run_id: str) -> tuple[int, int]:
    """Return how many requests of a run providers lost with their batches, and about how many tokens they had."""
    row = connection.execute(_LOST_REQUESTS, {"run": run_id}).one()
    return row[0], row[1]


def _total(name: str) -> Any:
    finished = sa.func.sum(steps.c[name]).filter(steps.c.state == StepState.FINISHED)
    return sa.cast(sa.func.coalesce(finished, 0), steps.c[name].type).label(name)


_run = sa.bindparam("run", type_=sa.Text)
_adopted = steps.c.adopted_from.is_not(None)
_work = (
    steps.c.kind,
    _adopted.label("adopted"),
    sa.func.count().label("steps"),
    *(_total(name) for name in ("prompt_tokens", "cached_prompt_tokens", "generated_tokens", "milliseconds")),
)
_ended = steps.c.run_id == _run, steps.c.state.in_([StepState.FINISHED, StepState.FAILED])
_WORK = sa.select(*_work).where(*_ended).group_by(steps.c.kind, _adopted).order_by(steps.c.kind, _adopted)
_WORK_BY_QUESTION = (
    sa.select(questions.c.id, questions.c.key, *_work)
    .join_from(steps, questions, steps.c.question_id == questions.c.id)
    .where(*_ended)
    .group_by(questions.c.id, steps.c.kind, _adopted)
    .order_by(questions.c.id, steps.c.kind, _adopted)
)

_LOST_REQUESTS = (
    sa.select(
        *(
            sa.cast(sa.func.coalesce(sa.func.sum(batch_items.c[name]), 0), sa.BigInteger)
            for name in ("lost", "lost_tokens")
        )
    )
    .join_from(batch_items, steps, batch_items.c.step_id == steps.c.id)
    .where(steps.c.run_id == _run, batch_items.c.lost > 0)
)
_took = sa.func.extract("epoch", attempts.c.ended_at - attempts.c.started_at)
_LOST = (
    sa.select(
        attempts.c.outcome,
        sa.func.count().label("executions"),
        sa.cast(sa.func.coalesce(sa.func.sum(_took), 0), steps.c.milliseconds.type).label("seconds"),
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


# Usage of a run's language models: every call that was paid, those without an answer too, and what it cost.


def read_spent(connection: sa.Connection, run_id: str) -> Spent:
    """Return what a run spent on language models so far: adopted steps cost it nothing."""
    row = connection.execute(_PRICED, {"run": run_id}).one()
    prices = read_prices({PRICES: row.prices or {}})
    above = thresholds(prices)
    rows = connection.execute(_USAGE, {"run": run_id, "above": list(above)}).mappings()
    return spent([_rated(each, above) for each in rows], prices, {MODEL: row.model_name})


def read_spent_by_question(connection: sa.Connection, run_id: str, ids: Sequence[int]) -> dict[int, Spent]:
    """Return what these questions of a run spent on language models, by their ids; those without a call have none."""
    row = connection.execute(_PRICED, {"run": run_id}).one()
    prices = read_prices({PRICES: row.prices or {}})
    above = thresholds(prices)
    parts = defaultdict(list)
    for each in connection.execute(_USAGE_BY_QUESTION, {"ids": list(ids), "above": list(above)}).mappings():
        parts[each["question_id"]].append(_rated(each, above))
    return {question: spent(of, prices, {MODEL: row.model_name}) for question, of in parts.items()}


def has_prices(connection: sa.Connection, run_id: str) -> bool:
    """Return whether any language model of a run is hosted, at a price that is known or not."""
    return bool(connection.execute(_PRICED, {"run": run_id}).one().prices)


def _rated(row: sa.RowMapping, above: Sequence[int]) -> RatedUsage:
    return RatedUsage(
        role=row["role"],
        above=[0, *above][row["tier"]],
        usage=Usage(**{name: int(row[name]) for name in Usage.__struct_fields__}),
    )


_PRICED = sa.select(runs.c.provenance[PRICES].label("prices"), runs.c.model_name).where(runs.c.id == _run)
_role = sa.func.coalesce(steps.c.request["model"].astext, MODEL)


def _count(written: sa.SQLColumnExpression[Any], name: str) -> sa.ColumnElement[int]:
    return sa.func.coalesce(written[name].astext.cast(sa.BigInteger), 0).label(name)


def _calls(written: sa.SQLColumnExpression[Any], of: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Select the calls that a column of JSON describes, as `Generated` is recorded; of: the condition of the steps."""
    names = ("prompt_tokens", "cached_prompt_tokens", "cache_written_tokens", "generated_tokens", "thought_tokens")
    estimated = sa.case((written["estimated"].astext == "true", 1), else_=0).label("estimated")
    return sa.select(
        steps.c.question_id, _role.label("role"), *(_count(written, name) for name in names), estimated
    ).where(of, steps.c.adopted_from.is_(None), written["prompt_tokens"].is_not(None))


_WRITTEN = "written"
_TOTALS = {
    "input_tokens": "prompt_tokens",
    "cached_tokens": "cached_prompt_tokens",
    "cache_written_tokens": "cache_written_tokens",
    "output_tokens": "generated_tokens",
    "thought_tokens": "thought_tokens",
    "estimated": "estimated",
}


def _usage(of: sa.ColumnElement[bool], *by: str) -> sa.Select[Any]:
    """Select the usage of these steps, by columns of them, by roles and by lengths of prompts."""
    called = sa.union_all(
        _calls(steps.c.result, of),
        _calls(steps.c.failure[_WRITTEN], of),
        # Executions that failed before the step was tried again.
        _calls(attempts.c.error[_WRITTEN], of).join_from(steps, attempts, attempts.c.step_id == steps.c.id),
    ).subquery("called")
    tier = sa.func.width_bucket(called.c.prompt_tokens - 1, sa.bindparam("above", type_=ARRAY(sa.BigInteger)))
    tiered = sa.select(called, tier.label("tier")).subquery("tiered")
    groups = *(tiered.c[name] for name in by), tiered.c.role, tiered.c.tier
    totals = (sa.func.sum(tiered.c[column]).label(name) for name, column in _TOTALS.items())
    return sa.select(*groups, sa.func.count().label("calls"), *totals).group_by(*groups).order_by(*groups)


_USAGE = _usage(steps.c.run_id == _run)
_USAGE_BY_QUESTION = _usage(
    steps.c.question_id == sa.func.any(sa.bindparam("ids", type_=ARRAY(sa.BigInteger))), "question_id"
)
