"""Experiment file of Search-in-the-Chain (section 4.1), and its runs: the method and its ablations (section 4.2)."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.evaluation.experiments.paper import Experiment

SYSTEM = "searchain"

Variation = Literal["", "without-retrieval", "without-verification", "without-completion"]
"""What a run leaves out; empty for nothing."""

SETTINGS: Mapping[Variation, Mapping[str, Any]] = {
    "": {},
    "without-retrieval": {"retrieve": False},
    "without-verification": {"verify": False},
    "without-completion": {"complete": False},
}
"""The settings of the system that define each variation."""


class SearChainFiles(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Location of a dataset's questions, and the corpus that is searched for them.

    corpus: name of the indexed corpus. format: format of the question file; the dataset's name by default.
    test_questions: number drawn from the file, by the experiment's seed; all by default.
    settings: further settings of the system on this dataset, over those of the experiment.
    """

    questions: str
    corpus: str
    format: str | None = None
    test_questions: Positive | None = None
    settings: dict[str, Any] = {}


class SearChainExperiment(Experiment, frozen=True, kw_only=True, tag=SYSTEM):
    """An experiment of Search-in-the-Chain.

    extractor, duplicate_rater, embedder: the models that the system's settings ask for; see a run's request.
    temperature: of the language model. settings: further settings of the system, under its name.
    """

    datasets: Annotated[dict[str, SearChainFiles], Meta(min_length=1)]
    models: tuple[str, ...] = ()
    extractor: str | None = None
    duplicate_rater: str | None = None
    embedder: str | None = None
    temperature: Temperature = 0.0

    def __post_init__(self) -> None:
        if unknown := sorted(self.settings.keys() - {SYSTEM}):
            raise ValueError(f"there are settings of {unknown[0]!r}, and the only system of the protocol is {SYSTEM}")


class SearChainTrial(Struct, frozen=True, kw_only=True):
    """One run of an experiment."""

    dataset: str
    model: str
    variation: Variation = ""

    @property
    def name(self) -> str:
        """Name of the run in its experiment, e.g. `hotpotqa/gpt/searchain/without-retrieval`."""
        return "/".join(filter(None, (self.dataset, self.model, SYSTEM, self.variation)))


def trials(experiment: SearChainExperiment) -> tuple[SearChainTrial, ...]:
    """The runs that the experiment's tables need, in the order of its file."""
    return tuple(
        SearChainTrial(dataset=dataset, model=model, variation=variation)
        for model in experiment.models
        for dataset in experiment.datasets
        for variation in SETTINGS
    )
