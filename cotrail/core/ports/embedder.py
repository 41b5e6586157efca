"""Port of sentence embedders: the interface of every model that compares sentences."""

from collections.abc import Sequence
from typing import Protocol

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.role import BatchedRole
from cotrail.core.results import Embedded


class Comparison(Protocol):
    """Sentences that are compared with paragraphs or, where there are none, with one another.

    It is structural so that actions, which are of this shape, may build on the ports and not the other way round.
    """

    @property
    def sentences(self) -> tuple[str, ...]:
        """The rows."""

    @property
    def paragraphs(self) -> tuple[Paragraph, ...]:
        """The columns."""


class Embedder(Protocol):
    """Compares sentences with paragraphs; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `all-mpnet-base-v2@1f0c...`."""

    def compare(self, comparisons: Sequence[Comparison]) -> list[Embedded]:
        """The cosine similarities of each comparison, in their order, rounded to 6 decimals.

        Paragraphs count as their `statement`. Raises StepError, TransientStepError.
        """


EMBEDDER: BatchedRole[Embedder, Comparison, Embedded] = BatchedRole(
    name="embedder",
    kind="embedder",
    work="compares sentences",
    has_default=True,
    carry_out=lambda embedder, comparisons: embedder.compare(comparisons),
)
