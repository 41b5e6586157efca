"""What servers write, as values of ours."""

import json
from typing import Any, TypeVar

import msgspec

from cotrail.errors import TransientStepError

T = TypeVar("T")


def decoded(data: str) -> Any:
    """The JSON of an event; raises TransientStepError where it is none."""
    try:
        return json.loads(data)  # msgspec's own decoder rejects lone surrogates
    except (ValueError, RecursionError) as error:
        raise TransientStepError(f"the server's answer isn't in the form of its API: {error}") from error


def converted(content: Any, form: type[T]) -> T:
    """A value of that type; raises TransientStepError where the content is of another form."""
    try:
        return msgspec.convert(content, form)
    except (ValueError, RecursionError) as error:
        raise TransientStepError(f"the server's answer isn't in the form of its API: {error}") from error
