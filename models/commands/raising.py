"""Raising the budgets of a run: the questions that they ended go on from where they were."""

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import BigInteger, Connection, Engine, bindparam, func, null, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from cotrail.core.budgets import NO_BUDGET, RUN, Budget, Budgets, Consumed, amount
from cotrail.core.history import LIMIT, Halts, Raised
from cotrail.errors import InputError
from cotrail.models.commands.chunks import OnProgress, by_chunks, lock_run, silently, through
from cotrail.models.commands.retrying import unseal
from cotrail.models.records.advancing import begin_questions
from cotrail.models.records.budgets import (
    check_quota,
    lock_quota,
    raise_budgets,
    read_budgets,
    read_consumed,
    read_run_consumed,
    record_halts,
)
from cotrail.models.records.questions import halts_of
from cotrail.models.records.runs import FindSystem, Runs
from cotrail.models.schema.database import notify
from cotrail.models.schema.seals import amending
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.models.schema.tables import questions, runs, steps


class RaisedBudgets(Struct, frozen=True, kw_only=True):
    """The budgets that a run has now, and how many questions go on by that."""

    budgets: Budgets
    questions: int


_ids = bindparam("ids", type_=ARRAY(BigInteger))
_recorded = select(func.count()).where(steps.c.question_id == questions.c.id).correlate(questions).scalar_subquery()
_ENDED = select(questions.c.id, questions.c.halted, questions.c.ended_by, _recorded.label("recorded")).where(
    questions.c.id == func.any(_ids),
    questions.c.ended_by == func.any(bindparam("ends", type_=ARRAY(questions.c.ended_by.type))),
)
_ENDS = ("answer", "sentences", "collected", "weighing", "reason", "ended_by", "finished_at", "digest")
_open: dict[str, Any] = {"status": QuestionStatus.OPEN} | dict.fromkeys(_ENDS, null())
_REOPEN = update(questions).where(questions.c.id == func.any(_ids)).values(_open)
_AGAIN: dict[str, Any] = {"state": StepState.WAITING} | dict.fromkeys(("finished_at", "sent_at", "digest"), null())
_REOPEN_STEPS = update(steps).where(steps.c.question_id == func.any(_ids), steps.c.state == StepState.CANCELLED)


def raise_budget(
    engine: Engine, run_id: str, budgets: Budgets, find_system: FindSystem, report: OnProgress = silently
) -> RaisedBudgets:
    """Give a run larger limits, and open the questions again that the former ones ended.

    budgets: the limits that change. Raises UnknownNameError, InputError where one isn't larger or the run has taken as
    much already, and QuotaExceededError where the project may not spend that much. Repeating an interrupted command
    completes it.
    """
    with engine.begin() as connection:
        quota = lock_quota(connection)
        lock_run(connection, run_id)
        begun_with = Runs(find_system).plan(connection, run_id).budgets
        now = _larger(begun_with, read_budgets(connection, run_id), budgets)
        _check_room(now.run, read_run_consumed(connection, run_id))
        raise_budgets(connection, run_id, now)
        # A closed run sets nothing aside of the project's money.
        amending(connection)
        connection.execute(update(runs).where(runs.c.id == run_id).values(digest=None))
        check_quota(connection, quota, ())
    names = [*_limits(budgets.question), *(f"{RUN}{name}" for name in _limits(budgets.run))]
    opening = partial(_go_on, Runs(find_system), run_id, now, [f"{LIMIT}{name}" for name in names])
    ended = through(by_chunks(engine, run_id, QuestionStatus.FINISHED, opening), report)
    unbegun = by_chunks(engine, run_id, QuestionStatus.CANCELLED, opening)
    ended += through(unbegun, lambda done: report(ended + done))
    with engine.begin() as connection:
        notify(connection, run_id)
    return RaisedBudgets(budgets=now, questions=ended)


def _limits(budget: Budget) -> dict[str, float]:
    """The limits that a budget has, by their names."""
    return {name: limit for name in budget.__struct_fields__ if (limit := getattr(budget, name)) is not None}


def _larger(begun_with: Budgets, now: Budgets, given: Budgets) -> Budgets:
    """The budgets with those limits; those of today are taken again, as an interrupted command is repeated."""
    if not (_limits(given.question) or _limits(given.run)):
        raise InputError("no limit is given: name those to raise, such as --question-budget tokens=40000")
    for of in ("question", "run"):
        first, had, wanted = (_limits(getattr(budgets, of)) for budgets in (begun_with, now, given))
        for name, limit in wanted.items():
            if name not in first:
                raise InputError(f"the run has no {of} budget of {name}, so that there is none to raise")
            if limit < had[name] or limit == first[name]:
                raise InputError(f"the {of} budget of {name} is {had[name]:g}, and only a larger one can be given")
    return Budgets(
        question=replace(now.question, **_limits(given.question)), run=replace(now.run, **_limits(given.run))
    )


def _check_room(budget: Budget, consumed: Consumed) -> None:
    """Raise InputError where a run has taken its whole budget, with which its questions would only answer once more."""
    if limit := budget.reached(consumed):
        taken, within = Decimal(getattr(consumed, limit)), Decimal(str(getattr(budget, limit)))
        raise InputError(
            f"the run has taken {amount(limit, taken)}, so that no question can go on within {amount(limit, within)}; "
            f"give it a larger budget: --run-budget {limit}=N, with N above {taken:f}"
        )


def _go_on(
    plans: Runs, run_id: str, budgets: Budgets, ends: Sequence[str], connection: Connection, ids: Sequence[int]
) -> int:
    """Open those of these questions again that such limits ended, and that haven't taken these budgets already."""
    ended = connection.execute(_ENDED, {"ids": ids, "ends": ends}).mappings().all()
    if budgets.question != NO_BUDGET:
        plan = plans.plan(connection, run_id)
        # With nothing left to take, a question would only answer once more.
        ended = [row for row in ended if not budgets.question.reached(read_consumed(connection, plan, row["id"]))]
    if not ended:
        return 0
    reopened = [row["id"] for row in ended]
    amending(connection)
    connection.execute(_REOPEN, {"ids": reopened})
    connection.execute(_REOPEN_STEPS.values(_AGAIN), {"ids": reopened})
    record_halts(connection, [{"id": row["id"], "halted": _raised(halts_of(row), row, budgets)} for row in ended])
    unseal(connection, reopened)
    begin_questions(connection, plans, reopened)
    return len(reopened)


def _raised(halts: Halts, row: Any, budgets: Budgets) -> Halts:
    """Where budgets ended a question, which now continues."""
    limit = row["ended_by"].removeprefix(LIMIT)
    if halts.after is None:
        return replace(halts, raised=(*halts.raised, Raised(budgets=budgets, limit=limit)))
    end = Raised(budgets=budgets, limit=limit, after=halts.after, until=row["recorded"])
    return Halts(raised=(*halts.raised, end))
