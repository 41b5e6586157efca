"""Steps as terminals, pages and programs show them, what of one a fork can edit, and steps as they are recorded."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from cotrail.common.humanize import count, duration
from cotrail.common.structs import common_fields, dotted
from cotrail.core.actions.generate import Prompted, shown_paragraphs
from cotrail.core.actions.registry import view_of
from cotrail.core.binding import MODEL
from cotrail.core.history import usage_of
from cotrail.core.money import RatedUsage, Spent, spent
from cotrail.core.prompts import Shown
from cotrail.core.results import Failure, Generated
from cotrail.core.views import Facts, FoundParagraph, FoundParagraphs, Note, View, name_of
from cotrail.errors import CotrailError, InputError
from cotrail.evaluation.metrics.supporting_paragraphs import is_gold
from cotrail.models.queries import traces
from cotrail.models.queries.runs import RunRecord, resolve_run
from cotrail.models.queries.step_attempts import StepAttempt, StepSeal, read_attempts, read_seal, read_step_times
from cotrail.models.queries.step_attempts import StepTimes as StepTimes
from cotrail.models.queries.traces import TracedQuestion as TracedQuestion
from cotrail.models.queries.traces import TracedStep, find_question, read_step
from cotrail.models.records.runs import read_prices
from cotrail.models.schema.database import unanswered
from cotrail.models.schema.states import QuestionStatus as QuestionStatus
from cotrail.models.schema.states import StepState as StepState
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.runs.labels import find_run
from cotrail.services.store import reading, reading_from


class ShownStep(traces.StepFacts, frozen=True, kw_only=True):
    """A step with its view, in which the paragraphs found are marked as new and as gold."""

    view: View

    @property
    def pending(self) -> str:
        """Its state, where its parts aren't what came of it; empty where they are."""
        return "" if self.view.parts and self.state == StepState.FINISHED else self.state

    @property
    def words(self) -> Iterator[str]:
        """What all steps have, in words: displays say it behind the `Facts` of a view."""
        if self.milliseconds is not None:
            yield f"computed in {duration(self.milliseconds / 1000)}"
        if self.attempts > 1:
            yield count(self.attempts, "attempt")
        if self.adopted:
            yield "adopted from another run"


def shown_steps(question: TracedQuestion) -> Iterator[ShownStep]:
    """The question's steps in their order."""
    collected = {(each.step, each.paragraph.digest) for each in question.collected}

    def mark(hit: FoundParagraph, step: int) -> FoundParagraph:
        return replace(hit, new=(step, hit.digest) in collected, gold=is_gold(hit.paragraph, question.gold))

    for step in question.steps:
        # Of a model that gave no answer there is what it wrote instead.
        written = step.failure.written if step.failure else None
        view = view_of(step.action, step.result or written)
        parts = (
            FoundParagraphs(hits=tuple(mark(hit, step.sequence) for hit in part.hits))
            if isinstance(part, FoundParagraphs)
            else part
            for part in view.parts
        )
        if step.edit is not None and step.edit.text is not None:  # nobody counted tokens of a text that a person gave
            parts = (part for part in parts if not isinstance(part, Facts))
        yield ShownStep(**facts_of(step), view=replace(view, parts=(*_edit(step), *parts)))


def _edit(step: traces.StepFacts) -> Iterator[Note]:
    """What replaces a part of what the system asked for; a text shows as what came out of the step."""
    if step.edit and step.edit.query is not None:
        yield Note(text=f"searched for “{step.edit.query}” instead, as {step.edit.by} wrote")
    elif step.edit and step.edit.prompt is not None:
        yield Note(text=f"shown another prompt than the system's, as {step.edit.by} wrote it")
    elif step.edit:
        yield Note(text=f"written by {step.edit.by}, and not by the model")


class StepParts(Struct, frozen=True, kw_only=True):
    """A step of a question.

    steps: it, behind those before it.
    query, text, prompt: its parts as they were carried out; None of a step that has no such part, and of a prompt that
        can't be rebuilt. text: with the stop string that ended it; empty where nothing was written.
    model, temperature, seed, settings: those of its run, the system's settings by their dotted paths.
    """

    run: str
    question_id: str
    question: str
    step: int
    kind: str
    steps: tuple[ShownStep, ...]
    query: str | None
    text: str | None
    prompt: str | None
    model: str
    temperature: float
    seed: int
    settings: dict[str, Any]


@operation("forks.parts", "GET", "/runs/{run}/questions/{question}/steps/{step}/parts", Scope.READ)
def show_step_parts(run: str, question: str, step: int) -> StepParts:
    """Give what of a step a fork can edit, and with which model and settings the fork would go on."""
    with reading() as connection:
        record = find_run(connection, run)
        traced = traces.read_question(connection, record.id, question)
        if not 0 <= step < len(traced.steps):
            raise InputError(f"question {traced.key} has no step {step}; its steps are 0 to {len(traced.steps) - 1}")
        found, shown = traced.steps[step], list(shown_steps(traced))
        return StepParts(
            run=record.id,
            question_id=traced.key,
            question=traced.text,
            step=step,
            kind=found.kind,
            steps=tuple(shown[max(0, step - BEFORE) : step + 1]),
            query=found.query,
            text=_text(found),
            prompt=_prompt(connection, record, traced.key, found),
            model=record.model_name,
            temperature=record.temperature,
            seed=record.seed,
            settings=dict(dotted(record.settings)),
        )


def facts_of(step: traces.StepFacts) -> dict[str, Any]:
    """What all steps have, by field."""
    return common_fields(step, traces.StepFacts)


def read_growing(engine: Engine, run: str) -> list[TracedQuestion]:
    """A run's questions with what is recorded of them so far; none where the database has just stopped answering."""
    try:
        with reading_from(engine) as connection:
            return list(traces.read_questions(connection, run))
    except SQLAlchemyError as error:
        if unanswered(error):
            return []
        raise


NAMED = "a step is named by RUN QUESTION STEP, or by its id alone"
"""What is said where it isn't."""


class StepPrompt(Struct, frozen=True, kw_only=True):
    """The exact prompt of a step."""

    run: str
    question: str
    step: int
    prompt: str


def step_prompt(connection: Connection, run: str, question: str | None = None, step: int | None = None) -> StepPrompt:
    """The prompt of a step, which is named by its run, question and number, or by its id in the table `steps` alone.

    Raises InputError where it has no prompt, and CotrailError where the store no longer holds what the model saw.
    """
    if question is not None and step is not None:
        named = resolve_run(connection, run), question, step
    elif question is None and run.isascii() and run.isdigit() and len(run) < 19:
        named = traces.find_step(connection, int(run))
    else:
        raise InputError(NAMED)
    return StepPrompt(run=named[0], question=named[1], step=named[2], prompt=traces.rebuild_prompt(connection, *named))


BEFORE = 3
"""The steps before it that are shown, so that a reader sees where it stands."""


def _text(step: traces.TracedStep) -> str | None:
    if not isinstance(step.action, Prompted):
        return None
    return f"{step.result.text}{step.result.stop}" if isinstance(step.result, Generated) else ""


def _prompt(connection: Connection, record: RunRecord, question: str, step: traces.TracedStep) -> str | None:
    if not isinstance(step.action, Prompted):
        return None
    try:
        return traces.rebuild_prompt(connection, record.id, question, step.sequence)
    except CotrailError:
        return None


@operation("questions.prompt", "GET", "/runs/{run}/questions/{question}/steps/{step}/prompt", Scope.READ)
def show_prompt(run: str, question: str, step: int) -> StepPrompt:
    """Give the exact prompt of a step, byte for byte as the model saw it."""
    with reading() as connection:
        return step_prompt(connection, run, question, step)


@operation("audits.prompt", "GET", "/steps/{step}/prompt", Scope.READ)
def show_prompt_of(step: str) -> StepPrompt:
    """Give the exact prompt of a step, by its id in the table `steps`."""
    with reading() as connection:
        return step_prompt(connection, step)


Extent = Literal["whole", "cut", "left out"]
"""How much of a paragraph the model was shown."""


class ShownToModel(Struct, frozen=True, kw_only=True):
    """A paragraph of a prompt; characters: how many were shown, with those that the prompt frames it with."""

    title: str
    digest: str
    extent: Extent
    characters: int


class ShownPrompt(Struct, frozen=True, kw_only=True):
    """What of a prompt the model was shown.

    paragraphs: all that the prompt has, in its order; demonstrations: of how many that the prompt has.
    """

    paragraphs: tuple[ShownToModel, ...]
    demonstrations: int
    of_demonstrations: int


class StepRecord(Struct, frozen=True, kw_only=True):
    """A step with all that is recorded of how it was carried out.

    view: what there is to show of it, without what depends on the question's other steps.
    failure: why it has no result, where it failed.
    asks: whether it has a prompt; prompt: what of it the model was shown, None before it wrote anything.
    usage: tokens of all executions; spent: what they cost, None where no model of the step has a price.
    """

    run: str
    question: str
    step: int
    kind: str
    state: str
    view: View
    failure: Failure | None
    asks: bool
    prompt: ShownPrompt | None
    milliseconds: float | None
    attempts: tuple[StepAttempt, ...]
    spent: Spent
    seal: StepSeal


@operation("questions.step", "GET", "/runs/{run}/questions/{question}/steps/{step}", Scope.READ)
def show_step(run: str, question: str, step: int) -> StepRecord:
    """Show how a step was carried out: executions, what the model was shown, what it cost and what seals it."""
    # Raises UnknownNameError where there is none.
    with reading() as connection:
        record = find_run(connection, run)
        question_id = find_question(connection, record.id, question)
        traced, attempts = read_step(connection, question_id, step), read_attempts(connection, question_id, step)
        action, written = traced.action, _written(traced)
        return StepRecord(
            run=record.id,
            question=question,
            step=step,
            kind=traced.kind,
            state=traced.state,
            view=view_of(action, traced.result or written),
            failure=traced.failure,
            asks=isinstance(action, Prompted),
            prompt=_shown_prompt(action, written) if isinstance(action, Prompted) and written else None,
            milliseconds=traced.milliseconds,
            attempts=attempts,
            spent=_spent(record, traced, attempts),
            seal=read_seal(connection, question_id, step),
        )


def _written(step: TracedStep) -> Generated | None:
    """What a model wrote, be it an answer or not."""
    if isinstance(step.result, Generated):
        return step.result
    return step.failure.written if step.failure else None


def _shown_prompt(action: Prompted, written: Generated) -> ShownPrompt:
    return ShownPrompt(
        paragraphs=tuple(_shown(action, written)),
        demonstrations=written.demonstrations,
        of_demonstrations=len(action.prompt.demonstrations.items),
    )


def _shown(action: Prompted, written: Generated) -> Iterator[ShownToModel]:
    for piece, text in shown_paragraphs(action, written):
        paragraph = piece.paragraph
        yield ShownToModel(
            title=name_of(paragraph), digest=paragraph.digest, extent=_extent(piece, text), characters=len(text)
        )


def _extent(piece: Shown, text: str) -> Extent:
    if not text:
        return "left out"
    return "whole" if len(text) >= len(replace(piece, words=None).text.strip()) else "cut"


def _spent(record: RunRecord, step: TracedStep, attempts: Iterable[StepAttempt]) -> Spent:
    """What a step cost: an adopted one nothing, and each execution whose model wrote no answer, too."""
    if step.adopted or not isinstance(step.action, Prompted):
        return Spent()
    before = (each.failure.written for each in attempts if each.failure)
    calls = (
        RatedUsage(role=step.action.model, above=each.prompt_tokens - 1, usage=usage_of(each))
        for each in (_written(step), *before)
        if each
    )
    return spent(calls, read_prices(record.provenance), {MODEL: record.model_name})


@operation("questions.times", "GET", "/runs/{run}/questions/{question}/times", Scope.READ)
def show_times(run: str, question: str) -> tuple[StepTimes, ...]:
    """Say when each step of a question was asked for, begun and ended, and which were asked for together."""
    with reading() as connection:
        return read_step_times(connection, find_question(connection, find_run(connection, run).id, question))
