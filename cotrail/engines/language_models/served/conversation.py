"""A prompt as a conversation of messages, for the APIs of providers that lay out the rest themselves."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile, zip_longest
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.core.calls import Call, given_ids
from cotrail.core.prompts import Demonstrated, Prompt, Role, Text, Turn

INSTRUCTION = "Continue the text below. Write only what comes next, and repeat nothing of it."
"""Beginning of the only message of a chat about a prompt without roles: a chat model would otherwise answer the whole
prompt instead of continuing it."""

_NO_ID = re.compile("[^A-Za-z0-9]")


class Message(Struct, frozen=True, kw_only=True):
    """One turn.

    shared: the beginning of its text that the prompts of all questions have; text: what stands behind it.
    calls: of tools, or none; answers: the call that it answers, in a tool's turn; both with the ids that are sent.
    carried: see `Generated`.
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


def conversation(prompt: Prompt) -> list[Message]:
    """The turns of a prompt; one without roles is a single message of the user's, which asks to continue it."""
    if not prompt.has_roles:
        shared, text = _divided(prompt.turns[0])
        return [Message(role="user", shared=f"{INSTRUCTION}\n\n{shared}", text=text)]
    return list(_turns(prompt))


def last_shared(said: Sequence[Message]) -> Message | None:
    """The last turn that begins as it does for all questions: one mark is for all before it."""
    return next((each for each in reversed(said) if each.shared.strip()), None)


def sent_ids(prompt: Prompt) -> dict[str, str]:
    """The ids under which calls and their answers are sent, by those that the system gave them.

    They are those that the server gave, or else such as every server takes.
    """
    sent = {turn.answers: _made_id(turn.answers) for turn in prompt.turns if turn.answers}
    for turn in prompt.turns:
        given = given_ids(turn.carried)
        sent |= {call.id: id_ or _made_id(call.id) for call, id_ in zip_longest(turn.calls, given[: len(turn.calls)])}
    return sent


def _made_id(own: str) -> str:
    """Nine letters and digits, which Mistral wants, for calls that no server gave an id."""
    turn, _, number = own.partition(".")
    return _NO_ID.sub("", f"call{turn:0>3}{number:0>2}")


def arguments_of(call: Call) -> dict[str, Any]:
    """The arguments of a call as an object, which a model that wrote no JSON didn't give."""
    try:
        return msgspec.json.decode(call.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}


def _turns(prompt: Prompt) -> Iterator[Message]:
    called, ids = dict[str, Call](), sent_ids(prompt)
    is_shared = True
    for turn in prompt.turns:
        shared, text = _divided(turn) if is_shared else ("", turn.text)
        is_shared = is_shared and not text and not turn.calls
        calls = tuple(replace(call, id=ids[call.id]) for call in turn.calls)
        unknown = Call(name="", arguments="", id=ids.get(turn.answers, ""))
        yield Message(
            role=turn.role,
            shared=shared,
            text=text,
            calls=calls,
            answers=called.get(turn.answers, unknown) if turn.answers else None,
            carried=msgspec.json.decode(turn.carried) if turn.carried else {},
        )
        called |= {own.id: call for own, call in zip(turn.calls, calls, strict=True)}


def _divided(turn: Turn) -> tuple[str, str]:
    """The part of a turn's text that the prompts of all questions have, and the rest."""
    own = takewhile(lambda piece: isinstance(piece, Demonstrated | Text), turn.pieces)
    length = sum(len(piece.text) for piece in own)
    # Lower case may have another length than its text, though hardly ever.
    return (turn.text[:length], turn.text[length:]) if not turn.lower else ("", turn.text)
