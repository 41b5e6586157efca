"""Messages of msgspec's validation with the value that was given, which msgspec itself leaves out."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from cotrail.common.humanize import cut
from cotrail.common.storable_text import storable

LONGEST_VALUE = 80
"""Maximum characters shown of a value."""

_PLACE = re.compile(r" - at `(\$[^`]*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(?:(\d+)|\.\.\.)\]")
"""A field, an entry of a list, or any key of a dictionary."""

_GOT = re.compile(r"got `(\w+)`")
_NAMING = ("Object ", "Invalid ")
"""How messages begin that name the field or the value themselves."""

_SECRET = re.compile(r"(?:key|password|secret|token)(?:_\w*)?$")
"""Ends of places whose values may be secrets, e.g. a key written in place of the name of the variable that holds it."""

_CREDENTIALS = re.compile(r"://[^/\s\"]*@")

_TYPES = {"null": type(None), "bool": bool, "int": int, "float": float, "str": str, "array": list, "object": dict}


def explained(error: msgspec.ValidationError, given: object) -> str:
    """The error's message with the value at its place in what was given, and with the key where msgspec writes `...`.

    given: what was validated, as JSON or TOML has it.
    """
    message = str(error)
    if message.startswith(_NAMING) or (found := _PLACE.search(message)) is None:
        return message
    steps = [(step[1] or "", step[2] or "") for step in _STEP.finditer(found[1])]
    candidates = list(_located(given, "$", steps))
    if got := _GOT.search(message):
        candidates = [each for each in candidates if type(each[1]) is _TYPES.get(got[1])]
    if len(candidates) != 1 or _SECRET.search(candidates[0][0]):
        return message
    (place, value), said = candidates[0], message[: found.start()]
    return f"{said} - at `{place}` (given: {shown(value)})"


def shown(value: object) -> str:
    """The value as JSON on one line, cut where it is long, without the credentials in addresses."""
    if isinstance(value, float):
        return repr(value)  # JSON has neither infinity nor NaN
    if isinstance(value, str):
        value = storable(value[: 2 * LONGEST_VALUE])
    written = msgspec.json.encode(value, enc_hook=str).decode()
    return cut(_CREDENTIALS.sub("://[secret]@", written), LONGEST_VALUE)


def _located(value: Any, place: str, steps: list[tuple[str, str]]) -> Iterator[tuple[str, Any]]:
    """Yield the values at a place as msgspec names it; several where it leaves a key open."""
    if not steps:
        yield place, value
        return
    (name, number), rest = steps[0], steps[1:]
    if isinstance(value, dict):
        for key in [name] if name else list(value):
            if key in value:
                yield from _located(value[key], f"{place}.{key}", rest)
    elif isinstance(value, list) and number and int(number) < len(value):
        yield from _located(value[int(number)], f"{place}[{number}]", rest)
