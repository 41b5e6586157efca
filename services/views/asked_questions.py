"""Questions that were asked alone, apart from whether anybody still waits for them."""

from datetime import datetime
from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.core.budgets import RUN, Budget
from cotrail.core.ended_by import LIMIT
from cotrail.errors import UnknownNameError
from cotrail.models.queries.traces import TracedQuestion, read_question
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.services.runs.named_runs import find_run
from cotrail.services.runs.requests import ASKED_ID
from cotrail.services.views.answering import answer_of
from cotrail.services.views.ask_events import Answer, StepEnded
from cotrail.services.views.shown_steps import shown_steps

State = Literal["queued", "in_progress", "completed", "failed", "cancelled", "incomplete"]
"""How far a question is: before its first step begins, until it ends, and how it ended. One that a budget ended is
incomplete, with what was found until then; one that is blocked has failed, until `cotrail resume`."""

_ENDS: dict[str, State] = {
    QuestionStatus.FINISHED: "completed",
    QuestionStatus.FAILED: "failed",
    QuestionStatus.BLOCKED: "failed",
    QuestionStatus.CANCELLED: "cancelled",
}
_BUDGETS = {f"{LIMIT}{of}{name}" for of in ("", RUN) for name in Budget.__struct_fields__}


class AskedState(Struct, frozen=True, kw_only=True):
    """A question that was asked, as it is recorded now."""

    run: str
    created_at: datetime
    system: str
    corpora: tuple[str, ...]
    model: str
    state: State
    steps: tuple[StepEnded, ...]
    answer: Answer


def read_asked(connection: Connection, run: str) -> AskedState:
    """The question of that run; raises UnknownNameError, also where the run isn't that of a question asked alone."""
    record = find_run(connection, run)
    if record.id != run or not record.asked:
        raise UnknownNameError(f"there is no question that was asked as {run}")
    question = read_question(connection, run, ASKED_ID)
    return AskedState(
        run=record.id,
        created_at=record.created_at,
        system=record.system,
        corpora=tuple(record.corpora),
        model=record.model_name,
        state=_state_of(question),
        steps=tuple(
            StepEnded(step=step)
            for step in shown_steps(question)
            if step.state in (StepState.FINISHED, StepState.FAILED)
        ),
        answer=answer_of(question),
    )


def end_of(answer: Answer) -> State:
    """How a question ended."""
    return "incomplete" if answer.ended_by in _BUDGETS else _ENDS[answer.status]


def _state_of(question: TracedQuestion) -> State:
    if question.status != QuestionStatus.OPEN:
        return end_of(answer_of(question))
    begun = any(step.state not in (StepState.WAITING, StepState.READY) for step in question.steps)
    return "in_progress" if begun else "queued"
