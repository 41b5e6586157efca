"""Search-in-the-Chain: its experiment file (section 4.1), and its runs: the method and its ablations (section 4.2)."""

from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any

from msgspec import Meta, field

from cotrail.common.humanize import Positive, Temperature
from cotrail.evaluation.experiments import paper
from cotrail.evaluation.experiments.searchain.runs import read_run
from cotrail.evaluation.experiments.searchain.tables import PRINTED, report

SYSTEM = "searchain"

SETTINGS: Mapping[str, Mapping[str, Any]] = PRINTED.names["variations"]
"""What a run leaves out, empty for nothing, and the settings of the system that define it."""


class SearChainFiles(paper.DatasetFiles, frozen=True, kw_only=True):
    """Location of a dataset's questions, and the corpus that is searched for them.

    corpus: name of the indexed corpus. test_questions: number drawn from the file, by the experiment's seed; all by
    default. settings: further settings of the system on this dataset, over those of the experiment.
    """

    corpus: str
    test_questions: Positive | None = None
    settings: dict[str, Any] = field(default_factory=dict)


class SearChainExperiment(paper.Experiment, frozen=True, kw_only=True, tag=SYSTEM):
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


def trials(experiment: SearChainExperiment) -> tuple[paper.GridCell, ...]:
    """The runs that the experiment's tables need, in the order of its file."""
    return tuple(
        paper.GridCell(dataset=dataset, model=model, method=SYSTEM, variation=variation)
        for model, dataset, variation in product(experiment.models, experiment.datasets, SETTINGS)
    )


def request(experiment: SearChainExperiment, trial: paper.GridCell) -> paper.RunKeys:
    """The request of a run."""
    files = experiment.datasets[trial.dataset]
    return experiment.request(
        SYSTEM,
        files.settings,
        SETTINGS[trial.variation],
        dataset=files.format or trial.dataset,
        questions=files.questions,
        corpus=files.corpus,
        model=trial.model,
        temperature=experiment.temperature,
        extractor=experiment.extractor,
        duplicate_rater=experiment.duplicate_rater,
        embedder=experiment.embedder,
    )


PAPER = paper.Paper(
    file=SearChainExperiment,
    stages=lambda experiment: paper.at_once(trials(experiment)),
    request=request,
    read=read_run,
    report=report,
    inputs=paper.GoldAsPublished,
    pinned=("embedders", "pins"),
)
