"""Questions that are opened again: failed and blocked ones, and with larger budgets those that budgets ended.

Those that a rule leaves over are ended.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import BigInteger, Connection, Engine, bindparam, exists, func, null, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on

from cotrail.core.budgets import NO_BUDGET, RUN, Budget, Budgets, Consumed, amount
from cotrail.core.history import LIMIT, UNTIL, Halts, Raised
from cotrail.errors import InputError
from cotrail.models.commands.control import (
    OnProgress,
    by_chunks,
    cancel_questions,
    lock_run,
    silently,
    through,
    unblock,
    used_up,
)
from cotrail.models.commands.summarizing import forget_summaries
from cotrail.models.records.advancing import begin_questions
from cotrail.models.records.budgets import (
    CURRENT,
    check_quota,
    lock_quota,
    raise_budgets,
    read_budgets,
    read_consumed,
    read_run_consumed,
    record_halts,
)
from cotrail.models.records.questions import MOST_REPLAYED, halts_of
from cotrail.models.records.runs import FindSystem, Runs
from cotrail.models.schema.database import notify
from cotrail.models.schema.seals import amending
from cotrail.models.schema.states import DesiredState, QuestionStatus, StepState
from cotrail.models.schema.tables import attempts, questions, run_consumption, runs, steps


class Retried(Struct, frozen=True, kw_only=True):
    """The numbers of questions opened again; stuck: failed ones without a failed step, which can't be retried."""

    failed: int = 0
    blocked: int = 0
    stuck: int = 0


_ids = bindparam("ids", type_=ARRAY(BigInteger))
_latest = (
    select(steps.c.question_id, steps.c.previous)
    .where(steps.c.question_id == func.any(_ids))
    .ext(distinct_on(steps.c.question_id))
    .order_by(steps.c.question_id, steps.c.sequence.desc())
    .subquery("latest")
)
_FAILED = (
    # Only those that were yielded together with the last step: the system caught any earlier failure, and later steps
    # depend on that.
    select(steps.c.id, steps.c.question_id)
    .where(
        steps.c.question_id == _latest.c.question_id,
        steps.c.previous == _latest.c.previous,
        steps.c.state == StepState.FAILED,
    )
    .with_for_update(of=steps)
)
_KEEP_FAILURES = (
    update(attempts)
    .where(attempts.c.step_id == steps.c.id, attempts.c.epoch == steps.c.epoch, steps.c.id == func.any(_ids))
    .values(error=steps.c.failure)
)
_ENDED = ("failure", "finished_at", "milliseconds", "adopted_from", "digest")
_EMPTY = dict.fromkeys((*_ENDED, "sent_at", "not_before"), null())
_REOPEN_STEPS = update(steps).where(steps.c.id == func.any(_ids)).values(_EMPTY | {"state": StepState.WAITING})
_OPEN: dict[str, Any] = {"status": QuestionStatus.OPEN} | dict.fromkeys(
    ("reason", "ended_by", "finished_at", "digest"), null()
)
_REOPEN_QUESTIONS = update(questions).where(questions.c.id == func.any(_ids)).values(_OPEN)
_UNSEAL_RUN = (
    update(runs)
    .where(runs.c.id == select(questions.c.run_id).where(questions.c.id == func.any(_ids)).limit(1).scalar_subquery())
    .values(digest=None)
)
"""The row is written even where it isn't sealed: a transaction that is sealing the run as it was before then fails with
a serialization error (`cotrail.models.execution.admission`)."""


def retry(
    engine: Engine, run_id: str, find_system: FindSystem, *, failed: bool, blocked: bool, report: OnProgress = silently
) -> Retried:
    """Open failed questions, blocked ones, or both again; raises UnknownNameError, InputError.

    The step that failed is executed again; `attempts` keeps its earlier failures. Repeating an interrupted retry
    completes it.
    """
    with engine.begin() as connection:
        lock_run(connection, run_id)
        if refusal := used_up(connection, run_id, "retry"):
            raise InputError(refusal)
    unblocked = unblock(engine, run_id, find_system, report) if blocked else 0
    counts, reopened = Counter[QuestionStatus](), 0
    if failed:
        reopening = by_chunks(engine, run_id, QuestionStatus.FAILED, partial(_reopen, counts))
        reopened = through(reopening, lambda done: report(unblocked + done))
    with engine.begin() as connection:
        notify(connection, run_id)
    return Retried(failed=reopened, blocked=unblocked, stuck=counts.total() - reopened)


def _reopen(counts: Counter[QuestionStatus], connection: Connection, ids: Sequence[int]) -> int:
    """Open those of these questions again whose latest steps failed, and unseal their run.

    counts: counts all of these questions; a question can have failed without a failed step, and then isn't opened.
    """
    counts[QuestionStatus.FAILED] += len(ids)
    failed = connection.execute(_FAILED, {"ids": ids}).all()
    step_ids = [row.id for row in failed]
    question_ids = sorted({row.question_id for row in failed})
    if question_ids:
        amending(connection)
        # Before the steps are emptied: their failures stay with the attempts that met them.
        connection.execute(_KEEP_FAILURES, {"ids": step_ids})
        connection.execute(_REOPEN_STEPS, {"ids": step_ids})
        connection.execute(_REOPEN_QUESTIONS, {"ids": question_ids})
        unseal(connection, question_ids)
    return len(question_ids)


def unseal(connection: Connection, question_ids: Sequence[int]) -> None:
    """Take away what says that these questions of a run, which are opened again, and the run itself have ended."""
    forget_summaries(connection, question_ids)
    connection.execute(_UNSEAL_RUN, {"ids": question_ids})


# Runs whose budgets are used up or whose rules are met: what hasn't begun is ended, as nothing more is admitted.

ENDING_SECONDS = 0.2
"""How long ending questions may take before others are admitted, not counting the last chunk."""

_CONSUMED = (
    select(runs.c.id, CURRENT.label("budgets"), *run_consumption.c)
    .join_from(run_consumption, runs, run_consumption.c.run_id == runs.c.id)
    .where(runs.c.digest.is_(None), runs.c.desired_state.in_([DesiredState.ACTIVE, DesiredState.PAUSED]))
    .order_by(runs.c.id)
)
# A step that was claimed before waits again where its question was blocked, or failed and is retried.
_begun = exists().where(
    steps.c.question_id == questions.c.id, or_(steps.c.state != StepState.WAITING, steps.c.epoch > 0)
)
_UNBEGUN = (
    select(questions.c.id)
    .where(questions.c.run_id == bindparam("run"), questions.c.status == QuestionStatus.OPEN, ~_begun)
    .order_by(questions.c.id)
    .limit(MOST_REPLAYED)
    .with_for_update(key_share=True, skip_locked=True)
)


def exhausted(connection: Connection) -> dict[str, str]:
    """Return the runs whose budgets are used up, each with the limit that it reached."""
    reached: dict[str, str] = {}
    for row in connection.execute(_CONSUMED).mappings():
        budgets = msgspec.convert(row["budgets"] or {}, Budgets)
        consumed = Consumed(**{name: row[name] for name in Consumed.__struct_fields__})
        if limit := budgets.run.reached(consumed):
            reached[row["id"]] = f"{RUN}{limit}"
    return reached


def end_unbegun(engine: Engine, stopped: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """End the next questions that haven't begun of runs whose budgets are used up, and of runs that a rule stopped.

    Returns the runs some of whose questions may still have to be ended.
    """
    # Bounded, as this runs within maintenance's sweeps, between which steps wait to be sent.
    until = time.monotonic() + ENDING_SECONDS
    with engine.begin() as connection:
        ends = {run_id: f"{LIMIT}{limit}" for run_id, limit in exhausted(connection).items()}
    ends |= {run_id: f"{UNTIL}{rule}" for run_id, rule in stopped.items()}
    unended = []
    for run_id, ended_by in ends.items():
        while left := _end_some(engine, run_id, ended_by):
            if time.monotonic() >= until:
                break
        unended += [run_id] if left else []
    return unended


def _end_some(engine: Engine, run_id: str, ended_by: str) -> int:
    with engine.begin() as connection:
        ids = connection.execute(_UNBEGUN, {"run": run_id}).scalars().all()
        if not ids:
            return 0
        notify(connection, run_id)
        return cancel_questions(connection, ids, ended_by)


class RaisedBudgets(Struct, frozen=True, kw_only=True):
    """The budgets that a run has now, and how many questions go on by that."""

    budgets: Budgets
    questions: int


_recorded = select(func.count()).where(steps.c.question_id == questions.c.id).correlate(questions).scalar_subquery()
_HALTED = select(questions.c.id, questions.c.halted, questions.c.ended_by, _recorded.label("recorded")).where(
    questions.c.id == func.any(_ids),
    questions.c.ended_by == func.any(bindparam("ends", type_=ARRAY(questions.c.ended_by.type))),
)
_FINISHED = ("answer", "sentences", "collected", "weighing", "reason", "ended_by", "finished_at", "digest")
_open: dict[str, Any] = {"status": QuestionStatus.OPEN} | dict.fromkeys(_FINISHED, null())
_REOPEN = update(questions).where(questions.c.id == func.any(_ids)).values(_open)
_AGAIN: dict[str, Any] = {"state": StepState.WAITING} | dict.fromkeys(("finished_at", "sent_at", "digest"), null())
_AWAITED_STEPS = update(steps).where(steps.c.question_id == func.any(_ids), steps.c.state == StepState.CANCELLED)


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
    ended = connection.execute(_HALTED, {"ids": ids, "ends": ends}).mappings().all()
    if budgets.question != NO_BUDGET:
        plan = plans.plan(connection, run_id)
        # With nothing left to take, a question would only answer once more.
        ended = [row for row in ended if not budgets.question.reached(read_consumed(connection, plan, row["id"]))]
    if not ended:
        return 0
    reopened = [row["id"] for row in ended]
    amending(connection)
    connection.execute(_REOPEN, {"ids": reopened})
    connection.execute(_AWAITED_STEPS.values(_AGAIN), {"ids": reopened})
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
