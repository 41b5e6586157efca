"""A prompt as a conversation of messages, for the APIs of providers that lay out the rest themselves."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.core.calls import Call
from cotrail.core.prompts import Demonstrated, Prompt, Role, Text, Turn

INSTRUCTION = "Continue the text below. Write only what comes next, and repeat nothing of it."
"""Beginning of the only message of a chat about a prompt without roles: a chat model would otherwise answer the whole
prompt instead of continuing it."""


class Said(Struct, frozen=True, kw_only=True):
    """One turn.

    shared: the beginning of its text that the prompts of all questions have; text: what stands behind it.
    calls: of tools, or none; answers: the call that it answers, in a tool's turn. carried: see `Generated`.
    """

    role: Role
    shared: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    answers: Call | None = None
    carried: dict[str, Any] = {}

    @property
    def whole(self) -> str:
        """Its whole text."""
        return self.shared + self.text


def conversation(prompt: Prompt) -> list[Said]:
    """The turns of a prompt; one without roles is a single message of the user's, which asks to continue it."""
    if not prompt.has_roles:
        shared, text = _divided(prompt.turns[0])
        return [Said(role="user", shared=f"{INSTRUCTION}\n\n{shared}", text=text)]
    return list(_turns(prompt))


def call_id(call: Call) -> str:
    """A call's id in the characters that all providers take."""
    return f"call_{call.id.replace('.', '_')}"


def arguments_of(call: Call) -> dict[str, Any]:
    """The arguments of a call as an object, which a model that wrote no JSON didn't give."""
    try:
        return msgspec.json.decode(call.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}


def _turns(prompt: Prompt) -> Iterator[Said]:
    called: dict[str, Call] = {}
    is_shared = True
    for turn in prompt.turns:
        shared, text = _divided(turn) if is_shared else ("", turn.text)
        is_shared = is_shared and not text and not turn.calls
        yield Said(
            role=turn.role,
            shared=shared,
            text=text,
            calls=turn.calls,
            answers=called.get(turn.answers, Call(name="", arguments="", id=turn.answers)) if turn.answers else None,
            carried=msgspec.json.decode(turn.carried) if turn.carried else {},
        )
        called |= {call.id: call for call in turn.calls}


def _divided(turn: Turn) -> tuple[str, str]:
    """The part of a turn's text that the prompts of all questions have, and the rest."""
    own = takewhile(lambda piece: isinstance(piece, Demonstrated | Text), turn.pieces)
    length = sum(len(piece.text) for piece in own)
    # Lower case may have another length than its text, though hardly ever.
    return (turn.text[:length], turn.text[length:]) if not turn.lower else ("", turn.text)
