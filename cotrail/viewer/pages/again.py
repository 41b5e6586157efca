"""A step tried again: a part of it, the model or the settings changed, and the question forked from there on."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from cotrail.core.edits import PARTS, Edit
from cotrail.engines.models_file import LANGUAGE_MODEL
from cotrail.errors import InputError
from cotrail.services.actor import Scope
from cotrail.services.library import models
from cotrail.services.results import steps
from cotrail.services.results.reports.pages import reported_step
from cotrail.services.results.steps import StepParts
from cotrail.services.runs import forking
from cotrail.services.runs.forking import ForkRequest
from cotrail.viewer.forms import changes, lines
from cotrail.viewer.links import link
from cotrail.viewer.page import GoTo, Shown, action, page
from cotrail.viewer.pages.comparisons import ROWS

MOST_CHARACTERS = 4_000_000
"""Of a prompt, as of a result (`cotrail.core.results`)."""

Text = Annotated[str, Meta(max_length=MOST_CHARACTERS)]
Line = Annotated[str, Meta(max_length=1000)]

PATH = "/runs/{run}/questions/{question}/steps/{step}/again"


class Typed(Struct, frozen=True, kw_only=True):
    """What was typed into the form; None where a field is empty. settings: `key = value`, one a line."""

    query: Text | None = None
    text: Text | None = None
    prompt: Text | None = None
    model: Line | None = None
    settings: Text | None = None


@page(PATH, Scope.SUBMIT)
def show(run: str, question: str, step: int) -> Shown:
    """A form with what the step asked for and gave."""
    parts = steps.show_step_parts(run, question, step)
    return _form(parts, Typed(query=parts.query, text=parts.text, prompt=parts.prompt, model=parts.model))


@action(PATH, Scope.SUBMIT)
def begin(run: str, question: str, step: int, typed: Typed) -> Shown | GoTo:
    """Fork from the step on, and go to the new chain beside the old one.

    Where that can't be done, the form says why and keeps what was typed.
    """
    parts = steps.show_step_parts(run, question, step)
    try:
        forked = forking.fork_run(_request(parts, typed))
    except InputError as error:
        return _form(parts, typed, problem=str(error))
    start = parts.step // ROWS * ROWS
    return GoTo(
        link("compare", "question", run=(parts.run, forked.run), question=parts.question_id, start=start or None)
    )


def _form(parts: StepParts, typed: Typed, problem: str = "") -> Shown:
    values = {
        "parts": parts,
        "typed": typed,
        "problem": problem,
        "models": _models(parts.model),
        "steps": [reported_step(each) for each in parts.steps],
        "settings": [(name, msgspec.json.encode(value).decode()) for name, value in _settable(parts).items()],
    }
    return Shown(template="again.html", section="runs", values=values)


def _settable(parts: StepParts) -> dict[str, Any]:
    """What may stand in the lines of settings, with what it is now."""
    return {"temperature": parts.temperature, "seed": parts.seed, **parts.settings}


def _models(current: str) -> list[str]:
    """The models to choose from, the run's own among them."""
    there = (each.name for each in models.list_models() if each.kind == LANGUAGE_MODEL and each.is_there)
    return list(dict.fromkeys((current, *there)))


def _request(parts: StepParts, typed: Typed) -> ForkRequest:
    changed = changes(typed.settings or "")
    if typed.model not in (None, parts.model):
        changed["model"] = typed.model
    return ForkRequest(
        run=parts.run, questions=(parts.question_id,), at=parts.step, changes=changed, edit=_edit(parts, typed)
    )


def _edit(parts: StepParts, typed: Typed) -> Edit | None:
    """What was changed of the step; None where nothing was."""
    changed = {name: lines(getattr(typed, name)) for name in PARTS if _is_changed(parts, typed, name)}
    for name, value in changed.items():
        if not value:
            raise InputError(f"the {name} is empty: write one, or leave it as it was")
    return Edit(**changed) if changed else None


def _is_changed(parts: StepParts, typed: Typed, name: str) -> bool:
    before = getattr(parts, name)
    return before is not None and lines(getattr(typed, name)) != lines(before)
