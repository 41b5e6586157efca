"""Judging whether a sentence follows from a paragraph."""

from cotrail.core.actions.kind import Action
from cotrail.core.paragraphs import Paragraph


class Entail(Action, frozen=True, kw_only=True):
    """Tell whether a sentence follows from a paragraph, or contradicts it."""

    premise: Paragraph
    hypothesis: str
