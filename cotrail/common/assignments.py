"""Values that people set in text."""

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from cotrail.errors import InputError


def assigned(arguments: Iterable[str], texts: Collection[str] = ()) -> dict[str, Any]:
    """Values from `KEY=VALUE`; a value is read as JSON, and taken as text where it isn't any or belongs to `texts`."""
    values: dict[str, Any] = {}
    for each in arguments:
        key, equals, text = each.partition("=")
        if not equals:
            raise InputError(f"{each!r} sets nothing: write KEY=VALUE")
        values[key] = text if key in texts else _value(text)
    return values


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
