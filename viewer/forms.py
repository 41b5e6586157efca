"""What stands in forms, as operations take it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cotrail.errors import InputError


def assignments(text: str) -> Mapping[str, Any]:
    """Values from lines `key = value`, each read as JSON or, where it isn't any, as a text; raises InputError."""
    values: dict[str, Any] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{line!r} sets nothing: write a line as `key = value`")
        values[key.strip()] = _value(value.strip())
    return values


def words(text: str) -> list[str]:
    """What stands between commas, each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
