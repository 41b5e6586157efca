"""Published tables with own runs of the same methods in them, and what differs between the rows."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from cotrail.evaluation.experiments.compare.experiment import ComparedRun
from cotrail.evaluation.experiments.ircot.cells import ircot
from cotrail.evaluation.experiments.report_tables import Column, ReportTable, TableRow, Value
from cotrail.evaluation.experiments.sources import (
    Layout,
    Measure,
    PublishedRow,
    PublishedTable,
    Source,
    dataset_title,
    fact,
    filed_sources,
)
from cotrail.evaluation.metrics.answer_metrics import METRICS

Runs = Sequence[ComparedRun]

LABELS = (
    Column("label", "Method"),
    Column("model", "Model"),
    Column("as", "System"),
    Column("questions of", "Dataset"),
)
FACTS = (
    Column("corpus", "Corpus"),
    Column("k", "K"),
    Column("metric", "Metric"),
    Column("questions", "Questions"),
    Column("without", "Without IR"),
)
DIFFERENCES = (
    "Published: {}. Rows differ in what their columns say: model, corpus, paragraphs a search (K), metric and "
    "questions. A dash is what isn't stated, or nothing to state."
)


# Own figures of the kinds that are published: scores, and how often retrieval makes a right answer wrong.


class OwnFigure(Struct, frozen=True, kw_only=True):
    """A figure of a run, from 0 to 1; label: of the published row that it is compared with, or the system's name.

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


# The tables.


def published_tables(runs: Runs) -> Iterator[ReportTable]:
    """Every published table that a run can fill, by its source."""
    for source in (ircot(), *filed_sources()):
        for table in source.tables:
            if filled := filled_table(source, table, runs):
                yield filled


def filled_table(source: Source, table: PublishedTable, runs: Runs) -> ReportTable | None:
    """A published table with the runs of its methods before its own rows; None where there are no such runs."""
    own = own_figures(table, runs)
    there = dict.fromkeys(figure.run.dataset for figure in own)
    datasets = dict.fromkeys((*(each for each in table.datasets if each in there), *there))
    return Layout(
        name=f"{source.name}-{table.name}",
        title=f"{table.heading} ({source.title}, {table.where})",
        columns=(*LABELS, *(Column(dataset, dataset_title(dataset), "percent") for dataset in datasets), *FACTS),
        rows=tuple(_published_row(table, row, datasets) for row in table.rows if row.scores.keys() & datasets),
        notes=(*table.notes, *source.notes, DIFFERENCES.format(source.cited)),
    ).filled(_own_rows(table, own))


def _own_rows(table: PublishedTable, own: Sequence[OwnFigure]) -> list[TableRow]:
    """A row for each system, model, retriever and variation, with a column for each dataset."""
    rows = defaultdict(list)
    for figure in own:
        cell = figure.run.cell
        # A dataset under another name than its format's may be a part of it, or another one.
        dataset = None if cell.dataset == figure.run.dataset else cell.dataset
        rows[figure.label, cell.model, cell.label, dataset].append(figure)
    return [
        TableRow(
            values={**dict(zip((column.name for column in LABELS), key, strict=True)), **_own_values(table, figures)},
            runs={figure.run.dataset: figure.runs for figure in figures},
        )
        for key, figures in rows.items()
    ]


def _own_values(table: PublishedTable, figures: Sequence[OwnFigure]) -> dict[str, Value]:
    by_dataset = {figure.run.dataset: figure for figure in figures}
    counts = {dataset: figure.run.retrieval_count for dataset, figure in by_dataset.items()}
    return {
        **{dataset: figure.value for dataset, figure in by_dataset.items()},
        "corpus": _said({dataset: figure.run.corpus or "" for dataset, figure in by_dataset.items()}),
        "k": _said({dataset: "" if k is None else str(k) for dataset, k in counts.items()}),
        "metric": _metric(table, by_dataset),
        "questions": _said({dataset: figure.questions for dataset, figure in by_dataset.items()}),
        "without": _said({d: figure.without.cell.name for d, figure in by_dataset.items() if figure.without}),
    }


def _published_row(table: PublishedTable, row: PublishedRow, datasets: Mapping[str, None]) -> TableRow:
    shown = [dataset for dataset in datasets if dataset in row.scores]
    facts = {"model": row.backbone, "corpus": row.corpus, "k": row.k, "questions": row.questions}
    said = {name: _said({dataset: fact(each, dataset) for dataset in shown}) for name, each in facts.items()}
    scores = {dataset: row.scores[dataset] for dataset in shown}
    return TableRow(values={"label": row.label, **scores, **said, "metric": _metric(table, shown)}, published=row.where)


def _metric(table: PublishedTable, datasets: Mapping[str, object] | Sequence[str]) -> str | None:
    return _said({dataset: METRICS[fact(table.metric, dataset)].title for dataset in datasets})


def _said(by_dataset: Mapping[str, str]) -> str | None:
    """What is said of all datasets, or of each; None where nothing is."""
    if len(set(by_dataset.values())) <= 1:
        return next(iter(by_dataset.values()), "") or None
    return "; ".join(f"{dataset_title(dataset)}: {said or '-'}" for dataset, said in by_dataset.items())
