"""Experiment file of the protocol of Search-in-the-Chain (section 4.1)."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from cotrail.common.numbers import Positive
from cotrail.core.ports.language_model import Profile
from cotrail.evaluation.experiments.file_fields import ExperimentName, Whole
from cotrail.systems.parts.rules import Rules

SYSTEM = "searchain"


class DatasetFiles(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class SearChainExperiment(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="protocol", tag=SYSTEM
):
    """Everything that determines the runs and their results.

    extractor, duplicate_rater, embedder: the models that the system's settings ask for; see a run's request.
    temperature: of the language model. settings: further settings of the system, under its name.
    """

    name: ExperimentName
    datasets: Annotated[dict[str, DatasetFiles], Meta(min_length=1)]
    models: tuple[str, ...] = ()
    rules: Rules = "paper"
    extractor: str | None = None
    duplicate_rater: str | None = None
    embedder: str | None = None
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    seed: Whole = 0
    profile: Profile = "deterministic"
    settings: dict[str, dict[str, Any]] = {}

    def __post_init__(self) -> None:
        if unknown := sorted(self.settings.keys() - {SYSTEM}):
            raise ValueError(f"there are settings of {unknown[0]!r}, and the only system of the protocol is {SYSTEM}")

    def format_of(self, dataset: str) -> str:
        """The format of a dataset's question file."""
        return self.datasets[dataset].format or dataset
