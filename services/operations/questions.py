"""Questions of runs: listed, and each with its steps, its trace and its prompts."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from cotrail.services.access.actor import Scope
from cotrail.services.lists.question_list import QuestionListPage, QuestionStatus, read_question_page
from cotrail.services.operations.operation import operation
from cotrail.services.store import reading
from cotrail.services.views.shown_questions import (
    QuestionPlace,
    ShownQuestion,
    StepTimes,
    question_place,
    question_times,
    show_question,
    trace_document,
)
from cotrail.services.views.step_prompts import StepPrompt, step_prompt
from cotrail.services.views.step_records import StepRecord, step_record

Limit = Annotated[int, Meta(ge=1, le=1000)]


@operation("GET", "/runs/{run}/questions", Scope.READ)
def index(
    run: str, status: Sequence[QuestionStatus] = (), limit: Limit = 100, after: str | None = None
) -> QuestionListPage:
    """List a run's questions in their order.

    status: those of any of these, or all; after: the question behind which the page begins, by its id or number.
    """
    with reading() as connection:
        return read_question_page(connection, run, statuses=status, limit=limit, after=after)


@operation("GET", "/runs/{run}/questions/{question}", Scope.READ)
def show(run: str, question: str) -> ShownQuestion:
    """Show how a question was answered: each step with what there is to show of it, the answer and what is said of it.

    question: its id or, where none has it, its number in the run, from 1.
    """
    with reading() as connection:
        return show_question(connection, run, question)


@operation("GET", "/runs/{run}/questions/{question}/trace", Scope.READ)
def trace(run: str, question: str) -> dict[str, Any]:
    """Give all that is recorded of a question: its answer, its scores, and each step with its request and result."""
    with reading() as connection:
        return trace_document(connection, run, question)


@operation("GET", "/runs/{run}/questions/{question}/place", Scope.READ)
def place(run: str, question: str) -> QuestionPlace:
    """Say which question of its run this is, and which stand before and behind it."""
    with reading() as connection:
        return question_place(connection, run, question)


@operation("GET", "/runs/{run}/questions/{question}/times", Scope.READ)
def times(run: str, question: str) -> tuple[StepTimes, ...]:
    """Say when each step of a question was asked for, begun and ended, and which were asked for together."""
    with reading() as connection:
        return question_times(connection, run, question)


@operation("GET", "/runs/{run}/questions/{question}/steps/{step}", Scope.READ)
def step(run: str, question: str, step: int) -> StepRecord:
    """Show how a step was carried out: executions, what the model was shown, what it cost and what seals it."""
    with reading() as connection:
        return step_record(connection, run, question, step)


@operation("GET", "/runs/{run}/questions/{question}/steps/{step}/prompt", Scope.READ)
def prompt(run: str, question: str, step: int) -> StepPrompt:
    """Give the exact prompt of a step, byte for byte as the model saw it."""
    with reading() as connection:
        return step_prompt(connection, run, question, step)
