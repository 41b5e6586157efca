"""Own figures of the kinds that are published: scores, and how often retrieval makes a right answer wrong."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from cotrail.evaluation.experiments.compare.runs import ComparedRun
from cotrail.evaluation.experiments.sources import Measure, PublishedRow, PublishedTable, fact

Runs = Sequence[ComparedRun]


class OwnFigure(Struct, frozen=True, kw_only=True):
    """A figure of a run, from 0 to 1; label: of the published row that it stands beside, or the system's name.

    questions: which it is of, in words. without: the run without retrieval that it is compared with, if it is.
    """

    label: str
    run: ComparedRun
    value: float
    questions: str
    without: ComparedRun | None = None

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs that it was computed from."""
        return tuple(run.cell.name for run in (self.run, self.without) if run)


def own_figures(table: PublishedTable, runs: Runs) -> tuple[OwnFigure, ...]:
    """The figures of these runs that belong into a published table."""
    return tuple(MEASURES[table.measure](table, runs))


def _scores(table: PublishedTable, runs: Runs) -> Iterator[OwnFigure]:
    """The scores of the runs of its methods on its datasets."""
    for run in runs:
        score = run.scores.get(fact(table.metric, run.dataset))
        if run.dataset in table.datasets and score is not None:
            for label in dict.fromkeys(row.label for row in table.rows if row.is_of(run.system, run.settings)):
                yield OwnFigure(label=label, run=run, value=score, questions=f"{run.questions:,}")


def _misled(table: PublishedTable, runs: Runs) -> Iterator[OwnFigure]:
    """How many right answers retrieval makes wrong, for each run that was also done without it, on any dataset."""
    for run in runs:
        row = next((row for row in table.rows if row.is_of(run.system, run.settings)), None)
        without = next((other for other in runs if _is_without(run, other, row)), None)
        if without is not None:
            yield from _compared(row.label if row else run.system, run, without, fact(table.metric, run.dataset))


def _compared(label: str, run: ComparedRun, without: ComparedRun, metric: str) -> Iterator[OwnFigure]:
    """The figure of the questions that have an answer in both; none where none of these is right without retrieval."""
    both = run.answered.keys() & without.answered.keys()
    right = [key for key in both if without.answered[key].get(metric) == 1]
    if right:
        wrong = sum(run.answered[key].get(metric) != 1 for key in right)
        questions = f"{len(right):,} right of {len(both):,}"
        yield OwnFigure(label=label, run=run, value=wrong / len(right), questions=questions, without=without)


def _is_without(run: ComparedRun, other: ComparedRun, row: PublishedRow | None) -> bool:
    """Return whether a run did without retrieval what another did with it: by its settings, or as published."""
    same = ("dataset", "model", "repeat")
    if any(getattr(other.cell, each) != getattr(run.cell, each) for each in same):
        return False
    alone = run.settings.get("retrieve") is True and other.settings == {**run.settings, "retrieve": False}
    named = row is not None and any(method.is_of(other.system, other.settings) for method in row.without)
    return (alone and other.system == run.system) or named


MEASURES: Mapping[Measure, Callable[[PublishedTable, Runs], Iterator[OwnFigure]]] = {
    "score": _scores,
    "misled": _misled,
}
