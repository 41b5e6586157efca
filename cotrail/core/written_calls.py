"""Calls of tools in what a model wrote, in the form of Hermes, which Qwen and others are trained on too.

A call is `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` (NousResearch, Hermes-Function-Calling).
"""

import re

import msgspec
from msgspec import Struct

from cotrail.core.calls import Call

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
