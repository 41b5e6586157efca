"""The port that every model that judges entailment is reached through."""

from collections.abc import Sequence
from typing import Protocol

from cotrail.core.actions.entail import Entail
from cotrail.core.results import Entailed

DECIMALS = 6
"""Those of a probability; beyond them it depends on which machine computed it."""


class Entailer(Protocol):
    """Judges sentences by paragraphs; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `albert-xxlarge-anli@1f0c...`."""

    def judge(self, actions: Sequence[Entail]) -> list[Entailed]:
        """How likely each hypothesis follows from its premise's `statement`, contradicts it, or does neither.

        In the order of the actions, as `entailed` rounds them. Raises StepError, TransientStepError, and
        UnavailableError where it asks a server that is away.
        """


def entailed(entailment: float, neutral: float, contradiction: float) -> Entailed:
    """Probabilities with 6 decimals that add up to 1: the greatest is what the others leave."""
    exact = {"entailment": entailment, "neutral": neutral, "contradiction": contradiction}
    greatest = max(exact, key=lambda label: exact[label])
    others = {label: round(each, DECIMALS) for label, each in exact.items() if label != greatest}
    return Entailed(**others, **{greatest: round(1 - sum(others.values()), DECIMALS)})
