"""Prompts that a person has changed: read back from their text, with the pieces that are still in it."""

from collections.abc import Callable, Iterable
from itertools import accumulate, takewhile, zip_longest
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.calls import Call
from cotrail.core.paragraphs import passage_of
from cotrail.core.prompts import Piece, Prompt, Role, Shown, Text, Turn, Written
from cotrail.errors import InputError


class _Function(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: str


class _Call(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    function: _Function
    type: str = "function"


class _Message(Struct, frozen=True, forbid_unknown_fields=True):
    """A turn as `Turn.message` writes it."""

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
