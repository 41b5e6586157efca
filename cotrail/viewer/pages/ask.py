"""Questions that are asked alone, and steps that are tried again in another way."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from cotrail.core.edits import PARTS, Edit
from cotrail.engines.models_file import LANGUAGE_MODEL
from cotrail.errors import InputError, RefusedError
from cotrail.services.actor import Scope
from cotrail.services.library import models
from cotrail.services.results import asking, steps
from cotrail.services.results.reports.pages import reported_step
from cotrail.services.results.steps import StepParts
from cotrail.services.runs import forking, requests
from cotrail.services.runs.forking import ForkRequest
from cotrail.viewer.page import GoTo, Shown, action, changes, lines, link, page
from cotrail.viewer.pages.comparisons import ROWS

ON_A_PAGE = 20

REFRESHED = 3
"""Seconds after which the list of questions is read again while one of them is being answered."""


class AskForm(Struct, frozen=True, kw_only=True):
    """What is in the form, as it was typed; its fields are those of an `AskRequest`."""

    question: str = ""
    system: str = ""
    corpus: str = ""
    model: str = ""
    retrieval_count: str = ""
    max_sentences: str = ""
    temperature: str = ""
    seed: str = ""


_NUMBERS = {"retrieval_count": int, "max_sentences": int, "temperature": float, "seed": int}


@page("/ask")
def form(question: str = "", system: str = "", corpus: str = "", model: str = "", after: str | None = None) -> Shown:
    """The form, filled in as the address says; after: the run behind which the list of questions continues."""
    return _shown(AskForm(question=question, system=system, corpus=corpus, model=model), after=after)


@action("/ask", Scope.SUBMIT)
def begin(form: AskForm) -> Shown | GoTo:
    """Begin to answer a question, and go to it; where it is refused, the form shows why, with all that was typed."""
    try:
        asked = asking.begin_asking(requests.make_ask_request({"question": "", **dict(_given(form))}))
    except (InputError, RefusedError) as error:
        return _shown(form, refused=str(error))
    return GoTo(link("runs", asked.run, "questions", asked.question))


def _given(form: AskForm) -> Iterator[tuple[str, Any]]:
    """The fields that were filled in, with numbers as such; what is none is left to be refused by name."""
    for name, text in asdict(form).items():
        if not text:
            continue
        try:
            yield name, _NUMBERS.get(name, str)(text)
        except ValueError:
            yield name, text


def _shown(form: AskForm, *, refused: str = "", after: str | None = None) -> Shown:
    asked = asking.show_asked(ON_A_PAGE, after)
    values = {"form": form, "refused": refused, "choices": asking.ask_choices(), "asked": asked, "after": after}
    under_way = any(each.status == "open" for each in asked.questions)
    return Shown(template="ask.html", section="ask", values=values, every=REFRESHED if under_way and not refused else 0)


# A step tried again: a part of it, the model or the settings changed, and the question forked from there on.

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
def begin_again(run: str, question: str, step: int, typed: Typed) -> Shown | GoTo:
    """Fork from the step on, and go to the new chain next to the old one.

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
    settable = {"temperature": parts.temperature, "seed": parts.seed, **parts.settings}
    values = {
        "parts": parts,
        "typed": typed,
        "problem": problem,
        "models": _models(parts.model),
        "steps": [reported_step(each) for each in parts.steps],
        "settings": [(name, msgspec.json.encode(value).decode()) for name, value in settable.items()],
    }
    return Shown(template="again.html", section="runs", values=values)


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
    there = {name: before for name in PARTS if (before := getattr(parts, name)) is not None}
    now = {name: lines(getattr(typed, name)) for name in there}
    changed = {name: value for name, value in now.items() if value != lines(there[name])}
    for name, value in changed.items():
        if not value:
            raise InputError(f"the {name} is empty: write one, or leave it as it was")
    return Edit(**changed) if changed else None
