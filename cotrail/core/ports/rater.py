"""Port of raters: the interface of every model that scores pairs of texts (cross-encoders)."""

from collections.abc import Sequence
from typing import Literal, Protocol

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.role import BatchedRole
from cotrail.core.results import Rated

By = Literal["duplicate", "relevance"]
"""What is scored: whether two questions ask the same, or how far a text answers a query."""

DECIMALS = 6
"""Decimals of a score; further ones depend on the machine that computed it."""


class Rating(Protocol):
    """A text and what it is scored against; structural, as `cotrail.core.ports.embedder.Comparison` is."""

    @property
    def text(self) -> str:
        """The first of each pair."""

    @property
    def others(self) -> tuple[str, ...]:
        """Texts that are the second of a pair."""

    @property
    def paragraphs(self) -> tuple[Paragraph, ...]:
        """Paragraphs that are the second of a pair, behind the texts."""


class Rater(Protocol):
    """Scores pairs of texts; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `quora-roberta-base@1f0c...`."""

    def rate(self, ratings: Sequence[Rating]) -> list[Rated]:
        """The scores of each rating, in their order, rounded to 6 decimals.

        Paragraphs count as their `statement`. Raises StepError, TransientStepError.
        """


RaterRole = BatchedRole[Rater, Rating, Rated]


def _rate(rater: Rater, ratings: Sequence[Rating]) -> Sequence[Rated]:
    return rater.rate(ratings)


DUPLICATE_RATER: RaterRole = BatchedRole(
    name="duplicate_rater", kind="rater", work="finds questions that ask the same", carry_out=_rate
)
RELEVANCE_RATER: RaterRole = BatchedRole(
    name="relevance_rater", kind="rater", work="scores how far texts answer", carry_out=_rate
)

RATERS: dict[By, RaterRole] = {"duplicate": DUPLICATE_RATER, "relevance": RELEVANCE_RATER}
"""Which rater scores what."""


def second_texts(rating: Rating) -> list[str]:
    """The second texts of a rating's pairs, in the order of its scores."""
    return [*rating.others, *(each.statement for each in rating.paragraphs)]
