"""Published tables with own runs of the same methods in them, and what differs between the rows."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from cotrail.data.datasets.registry import DATASETS
from cotrail.evaluation.experiments.compare.figures import OwnFigure, own_figures
from cotrail.evaluation.experiments.compare.runs import ComparedRun
from cotrail.evaluation.experiments.ircot.reported import ircot
from cotrail.evaluation.experiments.report_tables import Column, ReportTable, TableRow, Value, beside
from cotrail.evaluation.experiments.sources import (
    PublishedRow,
    PublishedTable,
    Source,
    fact,
    filed_sources,
)
from cotrail.evaluation.metrics.registry import METRICS

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


def published_tables(runs: Sequence[ComparedRun]) -> Iterator[ReportTable]:
    """Every published table that a run can fill, by its source."""
    for source in (ircot(), *filed_sources()):
        for table in source.tables:
            if filled := filled_table(source, table, runs):
                yield filled


def filled_table(source: Source, table: PublishedTable, runs: Sequence[ComparedRun]) -> ReportTable | None:
    """A published table with the runs of its methods before its own rows; None where there are no such runs."""
    own = own_figures(table, runs)
    there = dict.fromkeys(figure.run.dataset for figure in own)
    datasets = dict.fromkeys((*(each for each in table.datasets if each in there), *there))
    return beside(
        f"{source.name}-{table.name}",
        f"{table.heading} ({source.title}, {table.where})",
        (*LABELS, *(Column(dataset, _title(dataset), "percent") for dataset in datasets), *FACTS),
        _own_rows(table, own),
        [_published_row(table, row, datasets) for row in table.rows if row.scores.keys() & datasets],
        (*table.notes, *source.notes, DIFFERENCES.format(source.cited)),
    )


def _own_rows(table: PublishedTable, own: Sequence[OwnFigure]) -> list[TableRow]:
    """A row for each system, model, retriever and variation, with a column for each dataset."""
    rows = defaultdict(list)
    for figure in own:
        cell = figure.run.cell
        # A dataset under another name than its format's may be a part of it, or stand beside it.
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
    return "; ".join(f"{_title(dataset)}: {said or '-'}" for dataset, said in by_dataset.items())


def _title(dataset: str) -> str:
    return DATASETS[dataset].title if dataset in DATASETS else dataset
