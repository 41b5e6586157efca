"""A paper's experiments as one record: its file, the grid of its runs, and its tables and figures of their results."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from cotrail.evaluation.experiments.experiment_file import Experiment
from cotrail.evaluation.experiments.experiment_report import ExperimentReport
from cotrail.evaluation.experiments.inputs import Inputs, RunKeys
from cotrail.evaluation.experiments.recorded_runs import RecordedRun
from cotrail.evaluation.metrics.question_scores import QuestionScores


class Cell(Protocol):
    """A run of an experiment, by what it varies."""

    @property
    def name(self) -> str:
        """Name of the run in its experiment."""


class GridCell(Struct, frozen=True, kw_only=True):
    """A run of a grid: a system on a dataset with a model, as it is or varied."""

    dataset: str
    model: str
    method: str
    variation: str = ""

    @property
    def name(self) -> str:
        """Name of the run in its experiment, e.g. `strategyqa/gpt-3/rethinking/selection`."""
        return "/".join(filter(None, (self.dataset, self.model, self.method, self.variation)))


C = TypeVar("C", bound=Cell)
E = TypeVar("E", bound=Experiment)
R = TypeVar("R")


class Stage(Struct, Generic[C], frozen=True, kw_only=True):
    """Runs that can begin at once, and those that depend on their results.

    choose: the best of the cells by the scores of their questions; then: the runs that follow it. None if none follow.
    """

    cells: tuple[C, ...]
    choose: Callable[[Mapping[C, Sequence[QuestionScores]]], C] | None = None
    then: Callable[[C], tuple[C, ...]] = lambda _: ()

    @property
    def planned(self) -> tuple[C, ...]:
        """All of its runs, as if the first were the best."""
        return (*self.cells, *self.then(self.cells[0])) if self.choose else self.cells

    @property
    def possible(self) -> tuple[C, ...]:
        """Its runs whichever is the best."""
        return (*self.cells, *(cell for best in self.cells for cell in self.then(best))) if self.choose else self.cells


class Paper(Struct, Generic[E, C, R], frozen=True, kw_only=True):
    """What the experiments of a paper are.

    file: the type of its experiment files, whose tag is their `protocol`.
    stages: the runs of an experiment; each stage is independent of the others.
    request: a run's request, see `RunKeys`; a run leaves out the engines that its settings have no use for.
    read: what the tables need of a recorded run; report: the tables and figures, a pure function of these.
    inputs: questions and demonstrations. pinned: what a plan pins besides files, corpora and language models.
    """

    file: type[E]
    stages: Callable[[E], Sequence[Stage[C]]]
    request: Callable[[E, C], RunKeys]
    read: Callable[[C, RecordedRun], R]
    report: Callable[[Sequence[R]], ExperimentReport]
    inputs: type[Inputs] = Inputs
    pinned: tuple[str, ...] = ("embedders", "entailers", "pins")


AnyPaper = Paper[Any, Any, Any]


def at_once(cells: Iterable[C]) -> tuple[Stage[C], ...]:
    """The only stage of an experiment in which no run depends on another's result."""
    return (Stage(cells=tuple(cells)),)
