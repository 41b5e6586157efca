"""Rethinking with Retrieval: its experiment file (sections 4 and 5), and its runs.

No run depends on another's result. Runs that sample chains sample the same ones.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace

from cotrail.common import nearest
from cotrail.common.humanize import Positive
from cotrail.data.datasets.registry import TASK_OF
from cotrail.evaluation.experiments import paper
from cotrail.evaluation.experiments.rethinking.runs import read_run
from cotrail.evaluation.experiments.rethinking.tables import METHODS, PRINTED, report
from cotrail.faithfulness.tasks import Task
from cotrail.systems.registry import find_system

TableNumber = Literal[1, 3, 4, 5, 7]
"""A table of the paper: methods, retrieval by question or sentence, knowledge, variants, inference from facts."""

SETTINGS: Mapping[str, Mapping[str, Any]] = PRINTED.names["variations"]
"""The deviations of runs from their methods in table 1, empty for none, and the settings that define each."""


class TaskFiles(paper.DatasetFiles, frozen=True, kw_only=True):
    """Location of a task's questions, and of the demonstrations and knowledge to answer them.

    demonstrations: a file of chains of thought; few-shot prompting shows the answers that they state.
    corpus: name of the indexed corpus in which sentences are looked up; commonsense questions need one.
    evidence: name of the corpus with the dataset's annotated evidence under its ids (section 5.3).
    task: required for custom questions, whose format doesn't imply a task.
    """

    demonstrations: str
    corpus: str | None = None
    evidence: str | None = None
    task: Task | None = None


class RethinkingExperiment(paper.Experiment, frozen=True, kw_only=True, tag="rethinking"):
    """An experiment of Rethinking with Retrieval.

    tables: the paper's tables to fill, each for the tasks that the paper reports.
    test_questions: number drawn from each file, by the seed; all by default.
    chains: number of chains per question (N); the paper's by default.
    embedder, entailer: the models that weigh evidence; by default those of the paper or their substitutes.
    inferrer: the language model of table 7's rows of UnifiedQA, which are left out without it.
    """

    datasets: Annotated[dict[str, TaskFiles], Meta(min_length=1)]
    models: tuple[str, ...] = ()
    tables: Annotated[tuple[TableNumber, ...], Meta(min_length=1)] = (1, 3, 4, 5, 7)
    test_questions: Positive | None = None
    chains: Positive | None = None
    embedder: str | None = None
    entailer: str | None = None
    inferrer: str | None = None

    def __post_init__(self) -> None:
        if unknown := sorted(self.settings.keys() - METHODS.keys()):
            raise ValueError(f"`settings`: {nearest.unknown('method', unknown[0], METHODS)}")
        for name, files in self.datasets.items():
            format_ = files.format or name
            if format_ not in TASK_OF and files.task is None:
                raise ValueError(
                    f"the dataset {name} is none of {', '.join(TASK_OF)}{nearest.guess(format_, TASK_OF)}; "
                    "say with `task` what it asks"
                )
            if format_ in TASK_OF and files.task is not None:
                raise ValueError(f"the dataset {name} has a task of its own; leave `task` out")

    def task_of(self, dataset: str) -> Task:
        """The task of a dataset."""
        files = self.datasets[dataset]
        return files.task or TASK_OF[files.format or dataset]


class RethinkingTrial(paper.GridCell, frozen=True, kw_only=True):
    """One run of an experiment: a method on a dataset with a model."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that define its variation."""
        return SETTINGS[self.variation]

    @property
    def has_facts(self) -> bool:
        """Return whether its prompts show the facts that the dataset's annotators wrote."""
        return self.variation in ("gold-facts", "gold-facts-unifiedqa")

    @property
    def infers_elsewhere(self) -> bool:
        """Return whether a second language model infers its answers."""
        return self.settings.get("inferring_model") == "inferrer"

    @property
    def has_evidence(self) -> bool:
        """Return whether it uses the paragraphs that the dataset annotates as evidence."""
        return "evidence" in self.settings.get("knowledge", ())


def trials(experiment: RethinkingExperiment) -> tuple[RethinkingTrial, ...]:
    """The runs that the experiment's tables need, each once, in the order of its file.

    Runs over annotated evidence, or over the annotators' facts, are left out if a dataset has none.
    """
    compared = (
        RethinkingTrial(dataset=dataset, model=model, method=method, variation=variation)
        for model in experiment.models
        for dataset in experiment.datasets
        for table in experiment.tables
        for method, variation in _compared(table, experiment.task_of(dataset))
    )
    answered = (*compared, *_unifiedqa(experiment))
    return tuple(dict.fromkeys(each for each in answered if _can_be(experiment, each)))


def _unifiedqa(experiment: RethinkingExperiment) -> Iterator[RethinkingTrial]:
    """Table 7's runs of UnifiedQA: alone without facts and with the annotators', and with the facts of each model."""
    if experiment.inferrer is None or 7 not in experiment.tables:
        return
    for dataset in experiment.datasets:
        if experiment.task_of(dataset) != "commonsense":
            continue
        made = partial(RethinkingTrial, dataset=dataset)
        for alone in ("unifiedqa", "gold-facts-unifiedqa"):
            yield made(model=experiment.inferrer, method="zero-shot", variation=alone)
        for model in experiment.models:
            yield made(model=model, method="rethinking", variation="generation-unifiedqa")


def _can_be(experiment: RethinkingExperiment, trial: RethinkingTrial) -> bool:
    """Return whether the dataset has the evidence or facts that the run needs; only StrategyQA has facts."""
    files = experiment.datasets[trial.dataset]
    has_facts = (files.format or trial.dataset) == "strategyqa"
    return bool(files.evidence or not trial.has_evidence) and (has_facts or not trial.has_facts)


def _compared(table: TableNumber, task: Task) -> Iterator[tuple[str, str]]:
    """The methods and variations that a table compares on a task."""
    match table, task:
        case 1, _:
            yield from ((method, "") for method in METHODS)
        case 3, "commonsense" | "temporal":
            yield from (("rethinking", "by-question"), ("rethinking", ""))
        case 4, "tabular":
            yield from (("rethinking", "external"), ("rethinking", "background"), ("rethinking", ""))
        case 5, "commonsense":
            yield from (("rethinking", each) for each in ("evidence-greedy", "evidence-unvoted", "evidence"))
            yield from (("rethinking", each) for each in ("selection", "generation"))
        case 7, "commonsense":
            yield from ((method, facts) for facts in ("", "gold-facts") for method in ("zero-shot", "chain-of-thought"))
            yield from (("rethinking", each) for each in ("generation-zero-shot", "generation-cot"))


def request(experiment: RethinkingExperiment, trial: RethinkingTrial) -> paper.RunKeys:
    """The request of a run."""
    files = experiment.datasets[trial.dataset]
    format_, spec = files.format or trial.dataset, find_system(trial.method)
    takes_chains = spec.needs(spec.settings()).samples and "chains" not in trial.settings
    return experiment.request(
        trial.method,
        trial.settings,
        dataset=f"{format_}-facts" if trial.has_facts else format_,
        questions=files.questions,
        demonstrations=files.demonstrations,
        corpus=files.evidence if trial.has_evidence else files.corpus,
        task=None if format_ in TASK_OF else files.task,
        model=trial.model,
        embedder=experiment.embedder,
        entailer=experiment.entailer,
        inferrer=experiment.inferrer if trial.infers_elsewhere else None,
        chains=experiment.chains if takes_chains else None,
    )


PAPER = paper.Paper(
    file=RethinkingExperiment,
    stages=lambda experiment: paper.at_once(trials(experiment)),
    request=request,
    read=lambda trial, run: replace(read_run(run), id=trial.name),
    report=report,
    inputs=paper.GoldAsPublished,
    pinned=("embedders", "entailers", "knowledge"),
)
