"""What servers write, as values of ours."""

import json
from collections.abc import Collection
from typing import Any, TypeVar

import msgspec

from cotrail.common.storable_text import storable
from cotrail.errors import TransientStepError

T = TypeVar("T")


def decoded(data: str) -> Any:
    """The JSON of an event; raises TransientStepError where it is none."""
    try:
        return json.loads(data)  # msgspec's own decoder rejects lone surrogates
    except (ValueError, RecursionError) as error:
        raise TransientStepError(f"the server's answer isn't in the form of its API: {error}") from error


def event_of(content: Any, types: Collection[str], form: type[T]) -> T:
    """An event of a stream, by its `type`; one of no field where it is of another type than these.

    Raises TransientStepError where the content is of another form.
    """
    is_known = not isinstance(content, dict) or content.get("type") in types
    return converted(content if is_known else {}, form)


def encoded(content: Any) -> str:
    """The JSON of what a server wrote, whose strings may have lone surrogates."""
    return storable(json.dumps(content, ensure_ascii=False, separators=(",", ":")))


def converted(content: Any, form: type[T]) -> T:
    """A value of that type; raises TransientStepError where the content is of another form."""
    try:
        return msgspec.convert(content, form)
    except (ValueError, RecursionError) as error:
        raise TransientStepError(f"the server's answer isn't in the form of its API: {error}") from error
