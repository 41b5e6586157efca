"""Runs of experiments: a grid of cells, in stages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from cotrail.evaluation.metrics.scores import QuestionScores


class ExperimentCell(Protocol):
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


C = TypeVar("C", bound=ExperimentCell)


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


def at_once(cells: Iterable[C]) -> tuple[Stage[C], ...]:
    """The only stage of an experiment in which no run depends on another's result."""
    return (Stage(cells=tuple(cells)),)
