"""Meanings of a struct's fields, as its docstring gives them: `name: meaning`, or `one, other: meaning`."""

import inspect
import re
from functools import cache

from msgspec import Struct

_ENTRY = re.compile(r"(?:(?<=\n)|(?<=; ))(\w+(?:, \w+)*): ")
_CONTINUED = re.compile(r"\n +")


@cache
def field_meanings(of: type[Struct]) -> dict[str, str]:
    """The meanings by field, of the class and those that it derives from; fields without one are left out."""
    meanings: dict[str, str] = {}
    for cls in reversed(of.__mro__):
        if issubclass(cls, Struct) and cls.__doc__:
            meanings |= _entries(cls.__doc__, of.__struct_fields__)
    return meanings


def _entries(docstring: str, fields: tuple[str, ...]) -> dict[str, str]:
    # An entry begins on a line of its own, or behind a semicolon; indented lines continue it.
    text = _CONTINUED.sub(" ", "\n" + inspect.cleandoc(docstring))
    _, *parts = _ENTRY.split(text)
    entries = zip(parts[::2], parts[1::2], strict=True)
    return {
        name: " ".join(meaning.split("\n\n")[0].split()).rstrip(";.")
        for names, meaning in entries
        for name in names.split(", ")
        if name in fields
    }
