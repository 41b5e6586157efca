"""Questions that were asked alone, apart from whether anybody still waits for them."""

from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.errors import UnknownNameError
from cotrail.models.queries.traces import TracedQuestion, read_question
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.services.runs.named_runs import find_run
from cotrail.services.runs.requests import ASKED_ID
from cotrail.services.views.ask_events import Answer, StepEnded
from cotrail.services.views.asked_answers import State, answer_of, end_of
from cotrail.services.views.shown_steps import shown_steps


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


def _state_of(question: TracedQuestion) -> State:
    if question.status != QuestionStatus.OPEN:
        return end_of(answer_of(question))
    begun = any(step.state not in (StepState.WAITING, StepState.READY) for step in question.steps)
    return "in_progress" if begun else "queued"
