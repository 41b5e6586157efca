"""Edits: what a person has put in the place of a step's query, of its prompt, or of the text that it wrote.

The system doesn't see it. Its action stays the one that it asked for, and an edit decides only what is carried out in
its place. So a replay asks for the same steps, and continues with what came of the edited one.

Prompts that a person has changed: read back from their text, with the pieces that are still in it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, takewhile, zip_longest
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.nearest import guess
from cotrail.core.actions.generate import Prompted, check_form
from cotrail.core.actions.registry import KINDS, kind_of
from cotrail.core.calls import Call
from cotrail.core.generation import before_stop
from cotrail.core.prompts import Piece, Prompt, Role, Shown, Text, Turn, Written
from cotrail.core.questions import passage_of
from cotrail.core.results import Generated
from cotrail.core.system import Action
from cotrail.errors import InputError, UnansweredError

# Fork points: the step from which on a fork computes its own steps.

Point = int | str
"""A step's place in its question, from 0 or, below 0, from the end; or the first step of a kind."""

Points = Mapping[str, int]
"""The place of a step in each question, by the question's key."""


def read_point(text: str) -> Point:
    """The point that a person names; InputError says what there is."""
    if text in KINDS:
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no step to fork at{guess(text, KINDS)}: give its number in `cotrail trace`, a negative one "
            f"counted from the end, or a kind of step, which are {', '.join(KINDS)}"
        ) from None


def steps_before(point: Point, kinds: Sequence[str]) -> int:
    """Number of a question's steps before the point, by their kinds; all of them where there is no such step."""
    if isinstance(point, str):
        return kinds.index(point) if point in kinds else len(kinds)
    return max(0, len(kinds) + point) if point < 0 else min(point, len(kinds))


class _Function(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: str


class _Call(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    function: _Function
    type: str = "function"


class _Message(Struct, frozen=True, forbid_unknown_fields=True):
    role: Role
    content: str
    tool_calls: tuple[_Call, ...] = ()
    tool_call_id: str = ""
    carried: str = ""


class _Conversation(Struct, frozen=True, forbid_unknown_fields=True):
    messages: tuple[_Message, ...]
    tools: Any = None


def read_prompt(text: str, asked: Prompt) -> Prompt:
    """The prompt that this text is, as `Prompt.render` writes prompts; asked: the one that was changed.

    Raises InputError where a conversation can't be read, or has other tools than the one that was changed.
    """
    if not asked.has_roles:
        return replace(asked, turns=(_turn(asked.turns[0], Turn(role=""), text),))
    conversation = _read(text)
    if conversation.tools != (asked.functions or None):
        raise InputError("the tools of a conversation can't be changed: leave `tools` as they are")
    sides = zip_longest(asked.turns[: len(conversation.messages)], conversation.messages)
    try:
        return replace(asked, turns=tuple(_turn(former, _empty(message), message.content) for former, message in sides))
    except ValueError as error:
        raise InputError(f"this is no conversation: {error}") from error


def _read(text: str) -> _Conversation:
    try:
        return msgspec.json.decode(text, type=_Conversation)
    except msgspec.DecodeError as error:
        raise InputError(
            f"the prompt is a conversation, and this isn't one ({error}): change what `cotrail audit prompt` prints"
        ) from error


def _empty(message: _Message) -> Turn:
    calls = (
        Call(name=call.function.name, arguments=call.function.arguments, id=call.id) for call in message.tool_calls
    )
    return Turn(role=message.role, calls=tuple(calls), answers=message.tool_call_id, carried=message.carried)


def _turn(former: Turn | None, new: Turn, text: str) -> Turn:
    """The new turn with this text; where the former turn's pieces still stand in it, they are its pieces."""
    if former is None or former.role != new.role or former.lower:
        return replace(new, pieces=(_changed(text, quoted=True),))
    return replace(new, pieces=_pieces(former.pieces, text))


def _pieces(former: tuple[Piece, ...], text: str) -> tuple[Piece, ...]:
    """The text as pieces: those at its beginning and its end that it still has, and what stands between them now.

    The pieces that stay are what they were: demonstrations, paragraphs that may be left out, the question.
    """
    first = _kept((piece.text for piece in former), text.startswith)
    start = _length(former[:first])
    last = _kept((piece.text for piece in reversed(former[first:])), text[start:].endswith, backwards=True)
    replaced, behind = former[first : len(former) - last], former[len(former) - last :]
    between = text[start : len(text) - _length(behind)]
    quoted = not all(isinstance(piece, Text | Written) for piece in replaced)
    return (*former[:first], *((_changed(between, quoted=quoted),) if between else ()), *behind)


def _kept(texts: Iterable[str], stands: Callable[[str], bool], *, backwards: bool = False) -> int:
    """How many of these texts stand one behind the other, or one before the other, in the text that is asked."""
    joined = accumulate(texts, lambda before, each: each + before if backwards else before + each)
    return sum(1 for _ in takewhile(stands, joined))


def _length(pieces: Iterable[Piece]) -> int:
    return sum(len(piece.text) for piece in pieces)


def _changed(text: str, *, quoted: bool) -> Piece:
    """A text that a person wrote; quoted: whether it may hold what others wrote, which commands no model."""
    return Shown(paragraph=passage_of(text), form="{text}", yields=0) if quoted else Text(text)


EDIT = "edit"
"""The key of a fork's provenance under which it says what was edited."""

PARTS = ("text", "query", "prompt")


class Edit(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What replaces a part of a step: exactly one of these.

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
