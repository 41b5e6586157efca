"""Comparing sentences by embeddings."""

from cotrail.core.actions.kind import Action
from cotrail.core.paragraphs import Paragraph


class Embed(Action, frozen=True, kw_only=True):
    """Tell how alike sentences are to paragraphs, or, without paragraphs, to one another."""

    sentences: tuple[str, ...]
    paragraphs: tuple[Paragraph, ...] = ()
