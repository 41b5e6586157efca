"""Port of entailers: the interface of every model that judges entailment (natural language inference)."""

from collections.abc import Sequence
from typing import Protocol

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.role import BatchedRole
from cotrail.core.results import Entailed

DECIMALS = 6
"""Decimals of a probability; beyond them it depends on which machine computed it."""


class EntailmentPair(Protocol):
    """A premise and a hypothesis; structural, as `cotrail.core.ports.embedder.Comparison` is."""

    @property
    def premise(self) -> Paragraph:
        """The paragraph that counts as true."""

    @property
    def hypothesis(self) -> str:
        """The sentence that may follow from it."""


class Entailer(Protocol):
    """Judges hypotheses by premises; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `albert-xxlarge-anli@1f0c...`."""

    def judge(self, pairs: Sequence[EntailmentPair]) -> list[Entailed]:
        """How likely each hypothesis follows from its premise's `statement`, contradicts it, or does neither.

        In the order of the pairs, as `entailed` rounds them. Raises StepError, TransientStepError, and
        UnavailableError where it asks a server that is away.
        """


ENTAILER: BatchedRole[Entailer, EntailmentPair, Entailed] = BatchedRole(
    name="entailer",
    kind="entailer",
    work="judges whether evidence entails a sentence",
    has_default=True,
    carry_out=lambda entailer, pairs: entailer.judge(pairs),
)


def entailed(entailment: float, neutral: float, contradiction: float) -> Entailed:
    """Probabilities with 6 decimals that add up to 1: the greatest is the remainder of the others."""
    exact = {"entailment": entailment, "neutral": neutral, "contradiction": contradiction}
    # Rounding each alone could leave a sum of 0.999999. The difference matters least to the greatest.
    greatest = max(exact, key=lambda label: exact[label])
    others = {label: round(each, DECIMALS) for label, each in exact.items() if label != greatest}
    return Entailed(**others, **{greatest: round(1 - sum(others.values()), DECIMALS)})
