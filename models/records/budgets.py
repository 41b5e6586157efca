"""Budgets of runs and questions: what their steps took, by the record, and which questions that ends."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import BigInteger, Connection, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert

from cotrail.core.binding import MODEL
from cotrail.core.budgets import NO_BUDGET, NO_BUDGETS, Budgets, Consumed, priced, total
from cotrail.core.consumption import consumed_by
from cotrail.core.history import Halt, Next, Outcome
from cotrail.core.money import Usage
from cotrail.core.system import Action
from cotrail.models.records.runs import BUDGETS, RunPlan
from cotrail.models.schema.rows import Rows, recordset
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import questions, run_consumption, runs, steps


class EndedStep(Struct, frozen=True, kw_only=True):
    """A step that has just ended, and the run that it was computed for."""

    run: RunPlan
    action: Action
    outcome: Outcome
    milliseconds: float


class BudgetCheck:
    """Says which questions a budget ends, from what is recorded in this transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._of_runs: dict[str, Consumed] = {}
        self.halted: Rows = []

    def halt(self, plan: RunPlan, question_id: int, recorded: int, following: Next) -> Halt | None:
        """Return where a question ends whose next steps would be these; None where its budgets leave room for them.

        recorded: how many steps it has, all of which have ended.
        """
        if plan.budgets == NO_BUDGETS or not following.steps or not recorded:
            return None
        question = read_consumed(self._connection, plan, question_id)
        limit = plan.budgets.reached(question, self._of_run(plan))
        if not limit:
            return None
        halt = Halt(after=recorded, limit=limit)
        self.halted.append({"id": question_id, "halted": halt})
        return halt

    def record(self) -> None:
        """Record where questions were halted."""
        if self.halted:
            self._connection.execute(_HALT, {"rows": self.halted})

    def _of_run(self, plan: RunPlan) -> Consumed:
        if plan.budgets.run == NO_BUDGET:
            return Consumed()
        if plan.id not in self._of_runs:
            self._of_runs[plan.id] = read_run_consumed(self._connection, plan.id)
        return self._of_runs[plan.id]


def read_consumed(connection: Connection, plan: RunPlan, question_id: int) -> Consumed:
    """Return what the ended steps of a question took, whether or not another run computed them."""
    rows = connection.execute(_CONSUMED, {"question": question_id}).mappings()
    return total(
        priced(
            Usage(**{name: int(row[name]) for name in _TOKENS}), row["milliseconds"] or 0, plan.prices.get(row["role"])
        )
        for row in rows
    )


def add_consumed(connection: Connection, ended: Iterable[EndedStep]) -> None:
    """Add what steps took to the sums of those of their runs that have budgets."""
    parts: dict[str, list[Consumed]] = defaultdict(list)
    for each in ended:
        if each.run.budgets.run != NO_BUDGET:
            price = each.run.prices.get(getattr(each.action, "model", MODEL))
            parts[each.run.id].append(consumed_by(each.outcome, each.milliseconds, price))
    # In the order of their ids, so that transactions that add to the same runs can't deadlock.
    for run_id in sorted(parts):
        added = total(parts[run_id])
        values = {name: getattr(added, name) for name in Consumed.__struct_fields__}
        connection.execute(_ADD, {"run_id": run_id, **values})


def read_budgets(connection: Connection, run_id: str) -> Budgets:
    """Return the budgets of a run."""
    query = select(runs.c.provenance[BUDGETS]).where(runs.c.id == run_id)
    return msgspec.convert(connection.execute(query).scalar_one() or {}, Budgets)


def read_run_consumed(connection: Connection, run_id: str) -> Consumed:
    """Return what the steps of a run with a budget took that were computed for it."""
    row = connection.execute(_OF_RUN, {"run": run_id}).mappings().one_or_none()
    return Consumed(**row) if row else Consumed()


_TOKENS = {
    "input_tokens": "prompt_tokens",
    "cached_tokens": "cached_prompt_tokens",
    "cache_written_tokens": "cache_written_tokens",
    "output_tokens": "generated_tokens",
}
_written: Any = func.coalesce(steps.c.result, steps.c.failure["written"], type_=steps.c.result.type)
_CONSUMED = (
    select(
        func.coalesce(steps.c.request["model"].astext, MODEL).label("role"),
        steps.c.milliseconds,
        *(func.coalesce(_written[name].astext.cast(BigInteger), 0).label(label) for label, name in _TOKENS.items()),
    )
    .where(steps.c.question_id == bindparam("question"), steps.c.state.in_([StepState.FINISHED, StepState.FAILED]))
    .order_by(steps.c.sequence)
)
_new = insert(run_consumption).values({name: bindparam(name) for name in ("run_id", *Consumed.__struct_fields__)})
_ADD = _new.on_conflict_do_update(
    index_elements=[run_consumption.c.run_id],
    set_={name: run_consumption.c[name] + _new.excluded[name] for name in Consumed.__struct_fields__},
)
_OF_RUN = select(*(run_consumption.c[name] for name in Consumed.__struct_fields__)).where(
    run_consumption.c.run_id == bindparam("run")
)
_halts = recordset(questions.c.id, questions.c.halted)
_HALT = update(questions).where(questions.c.id == _halts.c.id).values(halted=_halts.c.halted)
