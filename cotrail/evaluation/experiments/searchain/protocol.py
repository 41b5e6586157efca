"""Protocol of Search-in-the-Chain: the method and its ablations on each dataset with each model (section 4.2).

No run depends on another's result, so all can begin at once.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from cotrail.evaluation.experiments.searchain.experiment import SYSTEM, SearChainExperiment

Variation = Literal["", "without-retrieval", "without-verification", "without-completion"]
"""What a run leaves out; empty for nothing."""

SETTINGS: Mapping[Variation, Mapping[str, Any]] = {
    "": {},
    "without-retrieval": {"retrieve": False},
    "without-verification": {"verify": False},
    "without-completion": {"complete": False},
}
"""The settings of the system that define each variation."""


class Trial(Struct, frozen=True, kw_only=True):
    """One run of an experiment."""

    dataset: str
    model: str
    variation: Variation = ""

    @property
    def name(self) -> str:
        """Name of the run in its experiment, e.g. `hotpotqa/gpt/searchain/without-retrieval`."""
        return "/".join(filter(None, (self.dataset, self.model, SYSTEM, self.variation)))

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that define its variation."""
        return SETTINGS[self.variation]


def trials(experiment: SearChainExperiment) -> tuple[Trial, ...]:
    """The runs that the experiment's tables need, in the order of its file."""
    return tuple(
        Trial(dataset=dataset, model=model, variation=variation)
        for model in experiment.models
        for dataset in experiment.datasets
        for variation in SETTINGS
    )
