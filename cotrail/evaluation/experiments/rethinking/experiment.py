"""Experiment file of the protocol of Rethinking with Retrieval (sections 4 and 5)."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from cotrail.common import nearest
from cotrail.common.numbers import Positive
from cotrail.data.datasets.registry import TASK_OF
from cotrail.evaluation.experiments.experiment_file import Experiment
from cotrail.evaluation.experiments.rethinking.published import METHODS
from cotrail.faithfulness.tasks import Task

TableNumber = Literal[1, 3, 4, 5, 7]
"""A table of the paper: methods, retrieval by question or sentence, knowledge, variants, inference from facts."""


class TaskFiles(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Location of a task's questions, and of the demonstrations and knowledge to answer them.

    demonstrations: a file of chains of thought; few-shot prompting shows the answers that they state.
    corpus: name of the indexed corpus in which sentences are looked up; commonsense questions need one.
    evidence: name of the corpus with the dataset's annotated evidence under its ids (section 5.3).
    format: format of the question file; the dataset's name by default.
    task: required for custom questions, whose format doesn't imply a task.
    """

    questions: str
    demonstrations: str
    corpus: str | None = None
    evidence: str | None = None
    format: str | None = None
    task: Task | None = None


class RethinkingExperiment(Experiment, frozen=True, kw_only=True, tag="rethinking"):
    """An experiment of Rethinking with Retrieval.

    tables: the paper's tables to fill, each for the tasks that the paper reports.
    test_questions: number drawn from each file, by the seed; all by default.
    chains: number of chains per question (N); the paper's by default.
    embedder, entailer: the models that weigh evidence; by default those of the paper or their substitutes.
    """

    datasets: Annotated[dict[str, TaskFiles], Meta(min_length=1)]
    models: tuple[str, ...] = ()
    tables: Annotated[tuple[TableNumber, ...], Meta(min_length=1)] = (1, 3, 4, 5, 7)
    test_questions: Positive | None = None
    chains: Positive | None = None
    embedder: str | None = None
    entailer: str | None = None

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
