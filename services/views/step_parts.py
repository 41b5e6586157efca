"""A step before it is tried again: what of it a fork can edit, and with what the fork would go on."""

from typing import Any

from msgspec import Struct
from sqlalchemy import Connection

from cotrail.common.dotted_names import dotted
from cotrail.core.actions.generate import Prompted
from cotrail.core.results import Generated
from cotrail.errors import CotrailError, InputError
from cotrail.models.queries.traces import rebuild_prompt
from cotrail.services.runs.named_runs import RunRecord, find_run
from cotrail.services.views.shown_steps import ShownStep, shown_steps
from cotrail.services.views.tracing import TracedStep, read_question

BEFORE = 3
"""The steps before it that are shown, so that a reader sees where it stands."""


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


def read_step_parts(connection: Connection, run: str, question: str, step: int) -> StepParts:
    """The step of that number; question: its id or, where none has it, its number in the run, from 1."""
    record = find_run(connection, run)
    traced = read_question(connection, record.id, question)
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


def _text(step: TracedStep) -> str | None:
    if not isinstance(step.action, Prompted):
        return None
    return f"{step.result.text}{step.result.stop}" if isinstance(step.result, Generated) else ""


def _prompt(connection: Connection, record: RunRecord, question: str, step: TracedStep) -> str | None:
    if not isinstance(step.action, Prompted):
        return None
    try:
        return rebuild_prompt(connection, record.id, question, step.sequence)
    except CotrailError:
        return None
