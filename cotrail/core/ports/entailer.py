"""Port of models that judge entailment (natural language inference)."""

from collections.abc import Sequence
from typing import Protocol

from cotrail.core.actions.entail import Entail
from cotrail.core.results import Entailed

DECIMALS = 6
"""Decimals of a probability; further ones depend on the machine that computed it."""


class Entailer(Protocol):
    """Judges hypotheses by premises; safe to call from many threads at once."""

    @property
    def identity(self) -> str:
        """The model's name and the digest of everything that decides its output, e.g. `albert-xxlarge-anli@1f0c...`."""

    def judge(self, actions: Sequence[Entail]) -> list[Entailed]:
        """The probabilities that each hypothesis follows from its premise's `statement`, contradicts it, or neither.

        In the order of the actions, rounded by `entailed`. Raises StepError, TransientStepError, and UnavailableError
        where the model is behind a server that is away.
        """


def entailed(entailment: float, neutral: float, contradiction: float) -> Entailed:
    """Three probabilities rounded to 6 decimals that still add up to 1: the greatest is what the others leave."""
    exact = {"entailment": entailment, "neutral": neutral, "contradiction": contradiction}
    # Rounding each alone could leave a sum of 0.999999. The difference matters least to the greatest.
    greatest = max(exact, key=lambda label: exact[label])
    others = {label: round(each, DECIMALS) for label, each in exact.items() if label != greatest}
    return Entailed(**others, **{greatest: round(1 - sum(others.values()), DECIMALS)})
