"""Port of models that compare sentences by their embeddings."""

from collections.abc import Sequence
from typing import Protocol

from cotrail.core.actions.embed import Embed
from cotrail.core.results import Embedded


class Embedder(Protocol):
    """Compares sentences with paragraphs; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `all-mpnet-base-v2@1f0c...`."""

    def compare(self, actions: Sequence[Embed]) -> list[Embedded]:
        """The cosine similarities that each action asks for, in the order of the actions.

        They are rounded to 6 decimals. A paragraph is compared by its `statement`; where an action has no paragraphs,
        its sentences are compared with one another. Raises StepError, TransientStepError.
        """
