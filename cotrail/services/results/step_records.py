"""Steps as they are recorded: executions, what of the prompt the model was shown, costs and seals."""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.actions.generate import Prompted, shown_paragraphs
from cotrail.core.actions.registry import view_of
from cotrail.core.binding import MODEL
from cotrail.core.money import RatedUsage, Spent, Usage, spent
from cotrail.core.prompts import Shown
from cotrail.core.results import Failure, Generated
from cotrail.core.views import View, name_of
from cotrail.models.queries.runs import RunRecord
from cotrail.models.queries.step_attempts import StepAttempt, StepSeal, StepTimes, read_attempts, read_seal
from cotrail.models.queries.traces import TracedStep, find_question, read_step
from cotrail.models.records.runs import read_prices
from cotrail.services.actor import Scope
from cotrail.services.operations.operation import operation
from cotrail.services.results.questions import question_times
from cotrail.services.runs.labels import find_run
from cotrail.services.store import reading

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
    calls = (_usage(step.action.model, each) for each in (_written(step), *before) if each)
    return spent(calls, read_prices(record.provenance), {MODEL: record.model_name})


def _usage(role: str, written: Generated) -> RatedUsage:
    usage = Usage(
        calls=1,
        input_tokens=written.prompt_tokens,
        cached_tokens=written.cached_prompt_tokens,
        cache_written_tokens=written.cache_written_tokens,
        output_tokens=written.generated_tokens,
        thought_tokens=written.thought_tokens,
        estimated=int(written.estimated),
    )
    return RatedUsage(role=role, above=written.prompt_tokens - 1, usage=usage)


@operation("questions.times", "GET", "/runs/{run}/questions/{question}/times", Scope.READ)
def show_times(run: str, question: str) -> tuple[StepTimes, ...]:
    """Say when each step of a question was asked for, begun and ended, and which were asked for together."""
    with reading() as connection:
        return question_times(connection, run, question)
