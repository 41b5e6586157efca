"""Tools that a model may call, and its calls of them.

Calls of tools in what a model wrote, in the form of Hermes, which Qwen and others are trained on too.

A call is `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` (NousResearch, Hermes-Function-Calling).
"""

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cotrail.common.printable_text import storable_json

ArgumentsT = TypeVar("ArgumentsT", bound=Struct)

GIVEN_IDS = "call_ids"
"""The field of what is carried (see `Generated`) that has the ids which a server gave to a turn's calls, in order."""


class Call(Struct, frozen=True, kw_only=True):
    """A call of a tool.

    arguments: JSON; id: given by the system, "TURN.NUMBER", since a server's are random. What is sent back to a server
    has the ids that it gave, see `given_ids`.
    """

    name: str
    arguments: str
    id: str = ""

    def read(self, arguments: type[ArgumentsT]) -> ArgumentsT | None:
        """The arguments as this type, in which NUL is U+FFFD; None where the model wrote others, or no JSON."""
        try:
            return msgspec.json.decode(storable_json(self.arguments), type=arguments)
        except (msgspec.DecodeError, RecursionError):
            return None


class Tool(Struct, frozen=True, kw_only=True):
    """A tool that the model may call; parameters: their JSON Schema, as text."""

    name: str
    description: str
    parameters: str


def given_ids(carried: str) -> tuple[str, ...]:
    """The ids that a server gave to the calls of a turn that carries this; none where it gave none."""
    fields: dict[str, Any] = msgspec.json.decode(carried) if GIVEN_IDS in carried else {}
    return tuple(fields.get(GIVEN_IDS, ()))


def given_ids_alone(carried: str) -> str:
    """What a turn carries on where it isn't handed back: the ids of its calls, which servers always need."""
    ids = given_ids(carried)
    return msgspec.json.encode({GIVEN_IDS: ids}).decode() if ids else ""


def numbered(calls: Iterable[Call], turn: int) -> tuple[Call, ...]:
    """The calls of the model's turn of that number, with the ids that a system gives them."""
    return tuple(replace(call, id=f"{turn}.{number}") for number, call in enumerate(calls))


_CALL = re.compile(r"<tool_call>(?:(.*?)</tool_call>|.*)", re.DOTALL)
"""A call, or the rest of a text behind one that doesn't end: no further one ends either."""


class _Written(Struct, frozen=True):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


def split_calls(text: str) -> tuple[str, tuple[Call, ...]]:
    """The text outside of calls, which is empty where it is white space, and the calls; they have no ids yet.

    What isn't a whole call, such as one whose JSON is broken, is text.
    """
    calls: list[Call] = []

    def take(match: re.Match[str]) -> str:
        try:
            call = msgspec.json.decode(match[1] or "", type=_Written)
        except (msgspec.DecodeError, RecursionError):
            return match[0]
        calls.append(Call(name=call.name, arguments=bytes(call.arguments).decode()))
        return ""

    outside = _CALL.sub(take, text)
    return outside if outside.strip() or not calls else "", tuple(calls)
