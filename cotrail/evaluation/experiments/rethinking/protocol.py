"""Protocol of Rethinking with Retrieval: the runs of an experiment (sections 4.5, 5.2, 5.3 and appendix A.5).

No run depends on another's result, so all can begin at once. Runs that sample chains sample the same ones.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from cotrail.evaluation.experiments.rethinking.experiment import RethinkingExperiment, TableNumber
from cotrail.evaluation.experiments.rethinking.published import METHODS
from cotrail.evaluation.experiments.stages import GridCell
from cotrail.faithfulness.tasks import Task

Variation = Literal[
    "",
    "by-question",
    "external",
    "background",
    "evidence-greedy",
    "evidence-unvoted",
    "evidence",
    "selection",
    "generation",
    "generation-zero-shot",
    "generation-cot",
    "gold-facts",
]
"""Deviation of a run from its method in table 1; empty for none."""

GENERATION = {"knowledge": ["evidence"], "variant": "generation"}

SETTINGS: Mapping[Variation, Mapping[str, Any]] = {
    "": {},
    "by-question": {"query": "question"},
    "external": {"knowledge": ["wordnet", "conceptnet"]},
    "background": {"knowledge": ["table"]},
    "evidence-greedy": {"knowledge": ["evidence"], "chains": 1, "temperature": 0.0},
    "evidence-unvoted": {"knowledge": ["evidence"], "voting": False},
    "evidence": {"knowledge": ["evidence"]},
    "selection": {"knowledge": ["evidence"], "variant": "selection"},
    "generation": GENERATION,
    "generation-zero-shot": {**GENERATION, "inference": "zero-shot"},
    "generation-cot": {**GENERATION, "reading": {"reader": "cot"}},
    "gold-facts": {},
}
"""The values of `RethinkingSettings` that define each variation."""


class Trial(GridCell, frozen=True, kw_only=True):
    """One run of an experiment: a method on a dataset with a model."""

    variation: Variation = ""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that define its variation."""
        return SETTINGS[self.variation]

    @property
    def has_facts(self) -> bool:
        """Return whether its prompts show the facts that the dataset's annotators wrote."""
        return self.variation == "gold-facts"

    @property
    def has_evidence(self) -> bool:
        """Return whether it uses the paragraphs that the dataset annotates as evidence."""
        return "evidence" in self.settings.get("knowledge", ())


def trials(experiment: RethinkingExperiment) -> tuple[Trial, ...]:
    """The runs that the experiment's tables need, each once, in the order of its file.

    Runs over annotated evidence, or over the annotators' facts, are left out if a dataset has none.
    """
    compared = (
        Trial(dataset=dataset, model=model, method=method, variation=variation)
        for model in experiment.models
        for dataset in experiment.datasets
        for table in experiment.tables
        for method, variation in _compared(table, experiment.task_of(dataset))
    )
    return tuple(dict.fromkeys(each for each in compared if _can_be(experiment, each)))


def _can_be(experiment: RethinkingExperiment, trial: Trial) -> bool:
    """Return whether the dataset has the evidence or facts that the run needs; only StrategyQA has facts."""
    files = experiment.datasets[trial.dataset]
    has_facts = (files.format or trial.dataset) == "strategyqa"
    return bool(files.evidence or not trial.has_evidence) and (has_facts or not trial.has_facts)


def _compared(table: TableNumber, task: Task) -> Iterator[tuple[str, Variation]]:
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
