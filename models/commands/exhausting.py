"""Runs whose budgets are used up or whose rules are met: what hasn't begun is ended, as nothing more is admitted."""

import time
from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from sqlalchemy import Connection, Engine, bindparam, exists, or_, select

from cotrail.core.budgets import RUN, Budgets, Consumed
from cotrail.core.history import LIMIT, UNTIL
from cotrail.models.commands.control import cancel_questions
from cotrail.models.records.budgets import CURRENT
from cotrail.models.records.maintaining import notify
from cotrail.models.records.questions import MOST_REPLAYED
from cotrail.models.schema.states import DesiredState, QuestionStatus, StepState
from cotrail.models.schema.tables import questions, run_consumption, runs, steps

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
