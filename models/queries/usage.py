"""Usage of a run's language models: every call that was paid, those without an answer too, and what it cost."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    SQLColumnExpression,
    Text,
    bindparam,
    case,
    func,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.core.binding import MODEL
from cotrail.core.money import RatedUsage, Spent, Usage, spent, thresholds
from cotrail.models.records.runs import PRICES, read_prices
from cotrail.models.schema.tables import attempts, runs, steps


def read_spent(connection: Connection, run_id: str) -> Spent:
    """Return what a run spent on language models so far: adopted steps cost it nothing."""
    row = connection.execute(_PRICED, {"run": run_id}).one()
    prices = read_prices({PRICES: row.prices or {}})
    return spent(read_usage(connection, run_id, thresholds(prices)), prices, {MODEL: row.model_name})


def has_prices(connection: Connection, run_id: str) -> bool:
    """Return whether any language model of a run is hosted, at a price that is known or not."""
    return bool(connection.execute(_PRICED, {"run": run_id}).one().prices)


def read_usage(connection: Connection, run_id: str, above: Sequence[int] = ()) -> list[RatedUsage]:
    """Return the usage of a run's language models, by role and by lengths of prompts; above: those lengths, sorted."""
    rows = connection.execute(_USAGE, {"run": run_id, "above": list(above)}).mappings()
    return [
        RatedUsage(
            role=row["role"],
            above=[0, *above][row["tier"]],
            usage=Usage(**{name: int(row[name]) for name in Usage.__struct_fields__}),
        )
        for row in rows
    ]


_run = bindparam("run", type_=Text)
_PRICED = select(runs.c.provenance[PRICES].label("prices"), runs.c.model_name).where(runs.c.id == _run)
_role = func.coalesce(steps.c.request["model"].astext, MODEL)


def _count(written: SQLColumnExpression[Any], name: str) -> ColumnElement[int]:
    return func.coalesce(written[name].astext.cast(BigInteger), 0).label(name)


def _calls(written: SQLColumnExpression[Any]) -> Select[Any]:
    """Select the calls that a column of JSON describes, as `Generated` is recorded."""
    names = ("prompt_tokens", "cached_prompt_tokens", "cache_written_tokens", "generated_tokens", "thought_tokens")
    estimated = case((written["estimated"].astext == "true", 1), else_=0).label("estimated")
    return select(_role.label("role"), *(_count(written, name) for name in names), estimated).where(
        steps.c.run_id == _run, steps.c.adopted_from.is_(None), written["prompt_tokens"].is_not(None)
    )


_WRITTEN = "written"
_called = union_all(
    _calls(steps.c.result),
    _calls(steps.c.failure[_WRITTEN]),
    # Executions that failed before the step was tried again.
    _calls(attempts.c.error[_WRITTEN]).join_from(steps, attempts, attempts.c.step_id == steps.c.id),
).subquery("called")
_tier = func.width_bucket(_called.c.prompt_tokens - 1, bindparam("above", type_=ARRAY(BigInteger)))
_TOTALS = {
    "input_tokens": "prompt_tokens",
    "cached_tokens": "cached_prompt_tokens",
    "cache_written_tokens": "cache_written_tokens",
    "output_tokens": "generated_tokens",
    "thought_tokens": "thought_tokens",
    "estimated": "estimated",
}
_tiered = select(_called, _tier.label("tier")).subquery("tiered")
_USAGE = (
    select(
        _tiered.c.role,
        _tiered.c.tier,
        func.count().label("calls"),
        *(func.sum(_tiered.c[column]).label(name) for name, column in _TOTALS.items()),
    )
    .group_by(_tiered.c.role, _tiered.c.tier)
    .order_by(_tiered.c.role, _tiered.c.tier)
)
