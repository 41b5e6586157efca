"""Stored requests of steps, which may be damaged or of another version when they are read back."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cotrail.core.actions.kind import digests_in
from cotrail.core.paragraphs import Paragraph
from cotrail.errors import UnreadableError

LONGEST_REASON = 200
"""The largest number of characters shown of why a step can't be read."""


def decoded(request: str) -> Any:
    """Return a stored action as JSON; None where it isn't readable JSON."""
    try:
        return msgspec.json.decode(request)
    except (msgspec.DecodeError, RecursionError):
        return None


def unreadable(request: Any, paragraphs: Mapping[str, Paragraph], error: Exception) -> UnreadableError:
    """Return an error that tells why a step can't be read."""
    if isinstance(error, UnreadableError):
        return error
    missing = [digest for digest in digests_in(request) if digest not in paragraphs]
    if isinstance(error, KeyError) and missing:
        return UnreadableError(f"the paragraph {missing[0]:.64} isn't in the store; restore it from a backup")
    return UnreadableError(
        f"what is recorded of the step can't be read ({type(error).__name__}: {error!s:.{LONGEST_REASON}}): it is "
        "damaged, or of a newer version, whose workers have to execute it"
    )
