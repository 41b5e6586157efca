"""The ways in which models call tools: calls that the engine reads, and calls that the system reads in a text."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from cotrail.core.calls import Call, Tool
from cotrail.core.demonstrations import Shots
from cotrail.core.generation import Capability
from cotrail.core.prompts import Piece, Prompt, tool
from cotrail.core.results import Generated
from cotrail.core.written_calls import split_calls
from cotrail.systems.parts.asking_on import going_on
from cotrail.systems.parts.words import worded
from cotrail.systems.tool_agents.loop import Told, Way

OPENED, CLOSED = "<tool_call>", "</tool_call>"
RESPONSE, RESPONSE_CLOSED = "<tool_response>", "</tool_response>"
ANSWER = "<answer>", "</answer>"
UNREADABLE = Call(name="", arguments="")
"""What was meant as a call and can't be read, such as JSON that is cut off."""

_CALL = re.compile(r"<tool_call>(?:.*?</tool_call>|.*)", re.DOTALL)
"""A call, or the rest of a text behind one that doesn't end: no further one ends either."""


def own_calls(written: Generated) -> tuple[Call, ...]:
    """The calls that the engine read, or the one that it couldn't."""
    return written.calls or ((UNREADABLE,) if OPENED in written.text else ())


def told_by_id(chat: Prompt, told: Told) -> Prompt:
    """A turn of the tool's for each call; what wasn't a call is answered by the user."""
    if not chat.turns[-1].calls:
        return going_on(chat, *(piece for _, each in told for piece in each.pieces))
    return chat.add(*(tool(call.id, *each.pieces) for call, each in told))


def tagged_calls(written: Generated) -> tuple[Call, ...]:
    """The calls between tags, in their order; none where the tags don't match, as by the code of ReCall."""
    text = written.text
    return _calls_in(text) if text.count(OPENED) == text.count(CLOSED) else ()


def first_tagged_call(written: Generated) -> tuple[Call, ...]:
    """The first call between tags, unless the message answers, as by the code of Tongyi DeepResearch."""
    if ANSWER[0] in written.text and ANSWER[1] in written.text:
        return ()
    return _calls_in(written.text)[:1]


def told_together(chat: Prompt, told: Told) -> Prompt:
    """One turn of the user's with a block for each call."""
    blocks = [(f"{RESPONSE}\n", *each.pieces, f"\n{RESPONSE_CLOSED}") for _, each in told]
    gapped: list[str | Piece] = [piece for block in blocks for piece in ("\n", *block)]
    return going_on(chat, *gapped[1:])


def schemas(tools: Sequence[Tool]) -> str:
    """The tools as a prompt shows them: a function's JSON a line."""
    functions = (
        {"name": each.name, "description": each.description, "parameters": msgspec.json.decode(each.parameters)}
        for each in tools
    )
    return "\n".join(msgspec.json.encode({"type": "function", "function": each}).decode() for each in functions)


def _calls_in(text: str) -> tuple[Call, ...]:
    return tuple(_read(match[0]) for match in _CALL.finditer(text) if match[0].endswith(CLOSED))


def _read(text: str) -> Call:
    _, calls = split_calls(text)
    return calls[0] if calls else UNREADABLE


Calls = Literal["own", "tagged"]
"""Whether a model calls tools in its own way, as its provider or its chat template has it, or as it is told to."""


class Calling(Struct, frozen=True, kw_only=True):
    """How a model calls tools, those that are shown to it in its own way, and the words that show them in a text."""

    way: Way
    tools: tuple[Tool, ...] = ()
    words: tuple[str | Piece, ...] = ()


def calling(calls: Calls, tools: Sequence[Tool], shots: Shots, own: Mapping[str, str]) -> Calling:
    """How these tools are called; own: the words of the system, of which `tagged` shows tools."""
    if calls == "own":
        return Calling(way=NATIVE, tools=tuple(tools))
    return Calling(way=tagged(""), words=("\n\n", *worded(shots, own, "tagged", tools=schemas(tools))))


def calling_needs(calls: Calls) -> frozenset[Capability]:
    """What calling tools asks of a model."""
    return frozenset({"turns", "tools"} if calls == "own" else {"turns"})


NATIVE = Way(calls=own_calls, told=told_by_id)
FIRST_TAGGED = Way(calls=first_tagged_call, told=told_together, stop=(f"\n{RESPONSE}", RESPONSE))


def tagged(begins: str) -> Way:
    """Calls between tags, in messages that begin so."""
    return Way(calls=tagged_calls, told=told_together, begins=begins)
