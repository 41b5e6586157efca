"""A question while it is answered: its steps as they end, and what is written meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import Connection, Engine, select

from cotrail.configuration.settings import settings
from cotrail.core.budgets import RUN, Budget
from cotrail.core.history import LIMIT
from cotrail.core.results import Generated
from cotrail.errors import InputError, UnknownNameError
from cotrail.models.commands.submission import AskedQuestion
from cotrail.models.queries.traces import TracedQuestion, read_question, read_traced
from cotrail.models.schema.states import QuestionStatus, StepState
from cotrail.models.schema.tables import steps
from cotrail.services.results.steps import ShownStep, shown_steps
from cotrail.services.runs.labels import find_run
from cotrail.services.runs.requests import ASKED_ID
from cotrail.services.store import reading_from

# What is sent of a question while it is answered: records of one union, which JSON tells apart by `event`.


class AskEvent(Struct, frozen=True, kw_only=True, tag_field="event"):
    """Something that happened to a question that is being answered."""


class Asked(AskEvent, frozen=True, kw_only=True, tag="asked"):
    """It is recorded and in the queues; warnings: what its run lacks, or has another thing for."""

    run: str
    question: str
    warnings: tuple[str, ...] = ()


class AskToken(AskEvent, frozen=True, kw_only=True, tag="token"):
    """A piece of what a step writes at the moment: of its text, or of a thought before it.

    A step that is carried out again begins its text again. What a step has written in the end is in its `AskStepEnded`.
    """

    step: int
    text: str
    thought: bool = False


class AskStepEnded(AskEvent, frozen=True, kw_only=True, tag="step"):
    """A step has a result, or has failed."""

    step: ShownStep


class Source(Struct, frozen=True, kw_only=True):
    """A paragraph that the question collected: where it comes from, and the search that found it first."""

    id: str
    title: str
    text: str
    step: int
    query: str


class AskUsage(Struct, frozen=True, kw_only=True):
    """Tokens of all steps together; reasoning: those of thoughts, which `generated` includes."""

    prompt: int = 0
    cached: int = 0
    generated: int = 0
    reasoning: int = 0


class Answer(AskEvent, frozen=True, kw_only=True, tag="answer"):
    """It has ended. answer: None where it has none, for the reason that is given; ended_by: see `TracedQuestion`."""

    status: str
    answer: str | None
    reason: str | None
    ended_by: str
    sources: tuple[Source, ...]
    usage: AskUsage


class End(AskEvent, frozen=True, kw_only=True, tag="end"):
    """Nothing follows; trace: the whole record, as `cotrail trace RUN 1 --json` prints it."""

    trace: dict[str, Any]


AnyAskEvent = Asked | AskToken | AskStepEnded | Answer | End

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


def end_of(answer: Answer) -> State:
    """How a question ended."""
    return "incomplete" if answer.ended_by in _BUDGETS else _ENDS[answer.status]


def answer_of(question: TracedQuestion) -> Answer:
    """The end of a question."""
    return Answer(
        status=question.status,
        answer=question.answer,
        reason=f"{question.reason.type}: {question.reason.message}" if question.reason else None,
        ended_by=question.ended_by,
        sources=tuple(
            Source(
                id=each.paragraph.id,
                title=each.paragraph.title,
                text=each.paragraph.text,
                step=each.step,
                query=each.query,
            )
            for each in question.collected
        ),
        usage=usage_of(question),
    )


def usage_of(question: TracedQuestion) -> AskUsage:
    """The tokens of a question's steps, those that failed included as far as they wrote."""
    results = [step.failure.written if step.failure else step.result for step in question.steps]
    written = [result for result in results if isinstance(result, Generated)]
    return AskUsage(
        prompt=sum(each.prompt_tokens for each in written),
        cached=sum(each.cached_prompt_tokens for each in written),
        generated=sum(each.generated_tokens for each in written),
        reasoning=sum(each.thought_tokens for each in written),
    )


class AskedState(Struct, frozen=True, kw_only=True):
    """A question that was asked, as it is recorded now."""

    run: str
    created_at: datetime
    system: str
    corpora: tuple[str, ...]
    model: str
    state: State
    steps: tuple[AskStepEnded, ...]
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
            AskStepEnded(step=step)
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


POLL_SECONDS = 0.2
"""How long the record isn't read where nothing is heard: of what no worker tells, or where Redis is away."""

ENDED_STEPS = (StepState.FINISHED, StepState.FAILED)


def answering(engine: Engine, asked: AskedQuestion, give_up: Callable[[], object]) -> Iterator[AnyAskEvent | None]:
    """Has a recorded question answered, and yields what happens until it has ended; None where nothing has for a while.

    give_up: called where the listener stops before that.
    """
    watched = _Watched(engine, asked.id)
    try:
        yield from _until_ended(watched, asked)
    except BaseException:
        with suppress(InputError):  # it may just have ended
            give_up()
        raise
    yield answer_of(watched.question)


def _until_ended(watched: "_Watched", asked: AskedQuestion) -> Iterator[AnyAskEvent | None]:
    # Celery takes half a second to import.
    from cotrail.tasks.routing import send
    from cotrail.tasks.telling import Hearing

    with Hearing(settings().broker, settings().broker_prefix, asked.id) as hearing:
        send(asked.messages)
        yield Asked(run=asked.run, question=ASKED_ID, warnings=asked.warnings)
        while watched.question.status == QuestionStatus.OPEN:
            heard = hearing.wait(POLL_SECONDS)
            for piece in heard:
                if piece.step not in watched.places:  # one has ended, or begun
                    yield from watched.read()
                place = watched.writing(piece.step)
                if place is not None:
                    yield AskToken(step=place, text=piece.text, thought=piece.thought)
            if not heard:
                yield from watched.read()
                yield None


class _Watched:
    """A question as it was last read; places: its steps' places, by the ids of their rows."""

    def __init__(self, engine: Engine, row: int) -> None:
        # The question and its steps as they are at one moment: with the end of the one, no step's may be missing.
        self._engine = engine.execution_options(isolation_level="REPEATABLE READ")
        self._row = row
        self._told: set[int] = set()
        self.places: dict[int, int] = {}
        self._read()

    def read(self) -> Iterator[AskStepEnded]:
        """Reads what is recorded now, and yields the steps that have ended since."""
        self._read()
        for step in shown_steps(self.question):
            if step.state in ENDED_STEPS and step.sequence not in self._told:
                self._told.add(step.sequence)
                yield AskStepEnded(step=step)

    def writing(self, step_id: int) -> int | None:
        """The place of a step that is still writing, as far as is known; None where it has ended, or isn't known."""
        place = self.places.get(step_id)
        return None if place in self._told else place

    def _read(self) -> None:
        with reading_from(self._engine) as connection:
            [self.question] = read_traced(connection, [self._row])
            places = select(steps.c.id, steps.c.sequence).where(steps.c.question_id == self._row)
            self.places = {row.id: row.sequence for row in connection.execute(places)}
