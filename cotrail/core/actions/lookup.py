"""Asking a knowledge source."""

from cotrail.core.actions.kind import Action
from cotrail.core.ports.knowledge import Source


class Lookup(Action, frozen=True, kw_only=True):
    """Ask a knowledge source about a text, of which it returns sentences.

    other: a second text, for sources that connect the words of two.
    """

    source: Source
    text: str
    other: str = ""
