"""Edits: what a person has put in the place of a step's query, of its prompt, or of the text that it wrote.

The system isn't told: its own action stays the one that it asked for, and an edit decides only what is carried out in
its place. So a replay asks for the same steps, and goes on with what came of the edited one.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.actions.generate import Prompted, check_form
from cotrail.core.actions.registry import kind_of
from cotrail.core.edited_prompts import read_prompt
from cotrail.core.generation import before_stop
from cotrail.core.results import Generated
from cotrail.core.system import Action
from cotrail.errors import InputError, UnansweredError

EDIT = "edit"
"""The key of a fork's provenance under which it says what was edited."""

PARTS = ("text", "query", "prompt")


class Edit(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What stands in the place of a part of a step: exactly one of these.

    text: of what a generation writes. query: of what a search is for. prompt: of what a generation is shown, as
        `cotrail audit prompt` prints it.
    """

    text: str | None = None
    query: str | None = None
    prompt: str | None = None

    @property
    def part(self) -> str:
        """Which of them it is; raises InputError where it isn't exactly one."""
        given = [name for name in PARTS if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError(f"an edit is one of {', '.join(PARTS)}; {' and '.join(given) or 'none'} is given")
        return given[0]

    @property
    def value(self) -> str:
        """What is put in its place."""
        return str(getattr(self, self.part))


class StepEdit(Edit, frozen=True, kw_only=True):
    """An edit as it is recorded with its step; by: the name of who made it."""

    by: str

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"{self.part} edited by {self.by}"


class Edited(Struct, frozen=True, kw_only=True):
    """The edit of a fork: the id of its question, and what was done there."""

    question: str
    edit: StepEdit


def read_edited(provenance: Mapping[str, Any]) -> Edited | None:
    """The edit that a fork carries, by its provenance; None where it carries none."""
    return msgspec.convert(provenance.get(EDIT), Edited | None)


def read_edit(stored: object) -> StepEdit | None:
    """An edit as it was recorded; None where there is none. Raises msgspec.ValidationError and InputError."""
    edit = msgspec.convert(stored, StepEdit | None)
    if edit is not None:
        _ = edit.part
    return edit


def edited(action: Action, edit: StepEdit | None) -> Action:
    """The action that is carried out in place of the system's; raises InputError where the edit is of another kind."""
    if edit is None:
        return action
    match edit.part, action:
        case "text", Prompted():
            return action
        case "prompt", Prompted():
            return replace(action, prompt=read_prompt(edit.value, action.prompt))
        case "query", _ if query := kind_of(action).query:
            return replace(action, **{query: edit.value})
    raise InputError(f"the step is of the kind {kind_of(action).name}, which has no {edit.part}: {_editable(action)}")


def _editable(action: Action) -> str:
    if isinstance(action, Prompted):
        return "its text or its prompt can be edited"
    return "its query can be edited" if kind_of(action).query else "its result can't be edited"


def given(action: Action, edit: StepEdit | None) -> Generated | None:
    """The result that an edit gives a step, so that nothing computes it; None where the step is carried out.

    A text with one of the action's stop strings ends before it, as that of a model would. Where probabilities are asked
    for, the text is as good as certain. Raises UnansweredError where it hasn't the form that the action asks for.
    """
    if edit is None or edit.text is None:
        return None
    asked = cast("Prompted", edited(action, edit))
    text, stop = before_stop(edit.text, asked.stop)
    result = Generated(
        text=text if asked.until == "stop" else text.strip(),
        raw=edit.text,
        ended="stop" if stop else "until",
        stop=stop,
        tokens=((edit.text, 0.0),) if asked.scored else (),
        demonstrations=len(asked.prompt.demonstrations.items),
        first_demonstration=asked.prompt.first_demonstration,
        paragraphs=len(asked.prompt.yielding),
        prompt_digest=asked.prompt.digest,
        prompt_tokens=0,
        cached_prompt_tokens=0,
        generated_tokens=0,
    )
    return check_form(asked, result)


def check_edit(action: Action, edit: StepEdit) -> None:
    """Raises InputError where a step that asks for this action can't be edited in this way."""
    edited(action, edit)
    if not edit.value.strip() and edit.part != "text":
        raise InputError(f"the {edit.part} is empty; write one")
    try:
        result = given(action, edit)
    except UnansweredError as error:
        raise InputError(f"the text can't stand there: {error}") from error
    if result is not None:
        result.check_recordable()
        if getattr(action, "until", "") in ("sentence", "line") and "\n" in result.text:
            raise InputError("the step writes one line; leave the line breaks out of its text")
