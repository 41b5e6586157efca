"""Free comparisons as a record, as papers are: any runs, and the published tables that they can fill."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from cotrail.common import nearest
from cotrail.common.structs import merged
from cotrail.core.history import shown_ends
from cotrail.core.ports.encoders import ROLES
from cotrail.errors import InputError
from cotrail.evaluation.experiments import sources
from cotrail.evaluation.experiments.compare.experiment import (
    ComparedCell,
    ComparedRun,
    CompareExperiment,
    RunFileKeys,
    cells,
    read_run,
    repeat_of,
)
from cotrail.evaluation.experiments.compare.recommended import DatasetChoice, choices, recommendation_table, sentence
from cotrail.evaluation.experiments.costs import PER_ASKED_NOTE, per_run, totals
from cotrail.evaluation.experiments.ircot.cells import ircot
from cotrail.evaluation.experiments.paper import Inputs, Paper, RunKeys, at_once, named_corpora
from cotrail.evaluation.experiments.report_tables import (
    Column,
    ExperimentReport,
    Mean,
    ReportTable,
    TableRow,
    Value,
    shown_interval,
    summary_of,
)
from cotrail.evaluation.metrics.answer_metrics import METRICS, main_metrics
from cotrail.evaluation.metrics.question_scores import CAVEAT, LEFT_OVER_CAVEAT, REPEATS_CAVEAT
from cotrail.evaluation.metrics.repeated_scores import repeated_scores
from cotrail.systems.parts.prompting import SHORT, short_path
from cotrail.systems.registry import find_system
from cotrail.systems.spec import Needs

# Published tables with own runs of the same methods in them, and what differs between the rows.

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


def own_figures(table: sources.PublishedTable, runs: Runs) -> tuple[OwnFigure, ...]:
    """The figures of these runs that belong into a published table."""
    return tuple(MEASURES[table.measure](table, runs))


def _scores(table: sources.PublishedTable, runs: Runs) -> Iterator[OwnFigure]:
    """The scores of the runs of its methods on its datasets."""
    for run in runs:
        score = run.scores.get(sources.fact(table.metric, run.dataset))
        if run.dataset in table.datasets and score is not None:
            for label in dict.fromkeys(row.label for row in table.rows if row.is_of(run.system, run.settings)):
                yield OwnFigure(label=label, run=run, value=score, questions=f"{run.questions:,}")


def _misled(table: sources.PublishedTable, runs: Runs) -> Iterator[OwnFigure]:
    """How many right answers retrieval makes wrong, for each run that was also done without it, on any dataset."""
    for run in runs:
        row = next((row for row in table.rows if row.is_of(run.system, run.settings)), None)
        without = next((other for other in runs if _is_without(run, other, row)), None)
        if without is not None:
            yield from _compared(
                row.label if row else run.system, run, without, sources.fact(table.metric, run.dataset)
            )


def _compared(label: str, run: ComparedRun, without: ComparedRun, metric: str) -> Iterator[OwnFigure]:
    """The figure of the questions that have an answer in both; none where none of these is right without retrieval."""
    both = run.answered.keys() & without.answered.keys()
    right = [key for key in both if without.answered[key].get(metric) == 1]
    if right:
        wrong = sum(run.answered[key].get(metric) != 1 for key in right)
        questions = f"{len(right):,} right of {len(both):,}"
        yield OwnFigure(label=label, run=run, value=wrong / len(right), questions=questions, without=without)


def _is_without(run: ComparedRun, other: ComparedRun, row: sources.PublishedRow | None) -> bool:
    """Return whether a run did without retrieval what another did with it: by its settings, or as published."""
    same = ("dataset", "model", "repeat")
    if any(getattr(other.cell, each) != getattr(run.cell, each) for each in same):
        return False
    alone = run.settings.get("retrieve") is True and other.settings == {**run.settings, "retrieve": False}
    named = row is not None and any(method.is_of(other.system, other.settings) for method in row.without)
    return (alone and other.system == run.system) or named


MEASURES: Mapping[sources.Measure, Callable[[sources.PublishedTable, Runs], Iterator[OwnFigure]]] = {
    "score": _scores,
    "misled": _misled,
}


def published_tables(runs: Runs) -> Iterator[ReportTable]:
    """Every published table that a run can fill, by its source."""
    for source in (ircot(), *sources.filed_sources()):
        for table in source.tables:
            if filled := filled_table(source, table, runs):
                yield filled


def filled_table(source: sources.Source, table: sources.PublishedTable, runs: Runs) -> ReportTable | None:
    """A published table with the runs of its methods before its own rows; None where there are no such runs."""
    own = own_figures(table, runs)
    there = dict.fromkeys(figure.run.dataset for figure in own)
    datasets = dict.fromkeys((*(each for each in table.datasets if each in there), *there))
    return sources.Layout(
        name=f"{source.name}-{table.name}",
        title=f"{table.heading} ({source.title}, {table.where})",
        columns=(
            *LABELS,
            *(Column(dataset, sources.dataset_title(dataset), "percent") for dataset in datasets),
            *FACTS,
        ),
        rows=tuple(_published_row(table, row, datasets) for row in table.rows if row.scores.keys() & datasets),
        notes=(*table.notes, *source.notes, DIFFERENCES.format(source.cited)),
    ).filled(_own_rows(table, own))


def _own_rows(table: sources.PublishedTable, own: Sequence[OwnFigure]) -> list[TableRow]:
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


def _own_values(table: sources.PublishedTable, figures: Sequence[OwnFigure]) -> dict[str, Value]:
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


def _published_row(table: sources.PublishedTable, row: sources.PublishedRow, datasets: Mapping[str, None]) -> TableRow:
    shown = [dataset for dataset in datasets if dataset in row.scores]
    facts = {"model": row.backbone, "corpus": row.corpus, "k": row.k, "questions": row.questions}
    said = {name: _said({dataset: sources.fact(each, dataset) for dataset in shown}) for name, each in facts.items()}
    scores = {dataset: row.scores[dataset] for dataset in shown}
    return TableRow(values={"label": row.label, **scores, **said, "metric": _metric(table, shown)}, published=row.where)


def _metric(table: sources.PublishedTable, datasets: Mapping[str, object] | Sequence[str]) -> str | None:
    return _said({dataset: METRICS[sources.fact(table.metric, dataset)].title for dataset in datasets})


def _said(by_dataset: Mapping[str, str]) -> str | None:
    """What is said of all datasets, or of each; None where nothing is."""
    if len(set(by_dataset.values())) <= 1:
        return next(iter(by_dataset.values()), "") or None
    return "; ".join(f"{sources.dataset_title(dataset)}: {said or '-'}" for dataset, said in by_dataset.items())


LAYOUTS = sources.printed("compare").layouts


def report(runs: Sequence[ComparedRun]) -> ExperimentReport:
    """The scores and costs of each run, and the published tables that they can fill."""
    found = choices(runs)
    summary = summary_of([run.is_answered for run in runs], *map(sentence, found))
    return ExperimentReport(summary=summary, tables=tuple(_tables(runs, found)))


def _tables(runs: Sequence[ComparedRun], found: Sequence[DatasetChoice]) -> Iterator[ReportTable]:
    yield from filter(None, (recommendation_table(found), scores(runs), repeats(runs)))
    yield from published_tables(runs)
    costs = per_run(((run.cell.name, run.asked_cost, len(run.asked)) for run in runs), PER_ASKED_NOTE)
    yield from filter(None, (costs, totals({None: [run.cost for run in runs]})))


def scores(runs: Sequence[ComparedRun]) -> ReportTable | None:
    """All runs with their scores and what ended their questions."""
    metrics = [Column(each.name, each.title, "decimal" if each.is_count else "mean") for each in METRICS.values()]
    repeated = any(run.cell.repeat > 1 for run in runs)
    rows = [
        TableRow(values={**_labels(run, repeated=repeated), **_means(run), "ended": shown_ends(run.ends) or None})
        for run in runs
    ]
    return LAYOUTS["scores"].filled(rows, *_caveats(CAVEAT, runs), across=metrics)


def _caveats(caveat: str, runs: Sequence[ComparedRun]) -> tuple[str, ...]:
    """What the intervals of these runs promise."""
    return (caveat, LEFT_OVER_CAVEAT) if any(run.was_cut for run in runs) else (caveat,)


def _means(run: ComparedRun) -> dict[str, Value]:
    """The means of a run, with their intervals where they have one."""
    found = {name: mean for name, mean in run.scores.items() if mean is not None}
    return {name: Mean(mean=mean, interval=shown_interval(run.intervals.get(name))) for name, mean in found.items()}


def repeats(runs: Sequence[ComparedRun]) -> ReportTable | None:
    """The main scores of each run over its repeats; None where there are none."""
    groups: dict[str, list[ComparedRun]] = defaultdict(list)
    for run in runs:
        groups[run.cell.first].append(run)
    rows = [row for of in groups.values() if len(of) > 1 for row in _over_repeats(of)]
    return LAYOUTS["repeats"].filled(rows, *_caveats(REPEATS_CAVEAT, runs))


def _over_repeats(runs: Sequence[ComparedRun]) -> Iterator[TableRow]:
    """A row for each main metric that the runs of one cell have."""
    asked, is_fixed = {run.cell.name: run.asked for run in runs}, not any(run.was_cut for run in runs)
    scored = repeated_scores(asked, len(runs), is_fixed=is_fixed)
    for metric in main_metrics():
        score = scored.metrics[metric.name]
        if score and not metric.is_count:
            values: dict[str, Value] = {
                "run": runs[0].cell.first,
                "metric": metric.title,
                "questions": scored.questions,
                "repeats": len(runs),
                "mean": score.mean,
                "error": score.standard_error,
                "interval": shown_interval(score.interval),
                "deviation": score.deviation,
                "pass": score.pass_at[-1].mean if score.pass_at else None,
            }
            yield TableRow(values=values, runs=dict.fromkeys(("mean", "pass"), scored.runs))


def _labels(run: ComparedRun, *, repeated: bool) -> dict[str, Value]:
    cell = run.cell
    return {
        "run": cell.name,
        "dataset": cell.dataset,
        "system": cell.method,
        "retriever": cell.retriever or None,
        "variation": cell.variation or None,
        "repeat": cell.repeat if repeated else None,
        "model": cell.model,
        "corpus": run.corpus,
        "k": run.retrieval_count,
        "questions": run.questions,
        "answered": len(run.answered),
        "unasked": run.unasked or None,
    }


CORPORA = frozenset(("corpus", "corpora"))
"""Keys that name what is searched; a run has one of them."""


class ComparedInputs(Inputs):
    """Questions and demonstrations; gold paragraphs are those of the corpora that a run names, searched or not."""

    def corpora(self) -> tuple[str, ...]:
        """All corpora that the file names."""
        named = (named_corpora(self.keys(cell)) for cell in cells(self.experiment))
        return tuple(dict.fromkeys(name for names in named for name in names))


def request(experiment: CompareExperiment, cell: ComparedCell) -> RunKeys:
    """The request of a run: what the file says of fewer runs goes before what it says of more."""
    files, system = experiment.datasets[cell.dataset], experiment.by_label[cell.method]
    keys: RunFileKeys = experiment.request(
        system.system,
        dataset=files.format or cell.dataset,
        questions=files.questions,
        demonstrations=files.demonstrations,
        model=cell.model,
        temperature=experiment.temperature,
        **({"corpora": files.corpora} if files.corpora else {"corpus": files.corpus}),
    )
    variation = {each.name: each.run for each in experiment.variations}.get(cell.variation, {})
    for fewer in (experiment.run, _of_retriever(experiment, cell), system.run, variation):
        if not CORPORA.isdisjoint(fewer):  # corpora that it names go in the place of others
            keys = {key: value for key, value in keys.items() if key not in CORPORA}
        keys = merged(keys, fewer)
    return {**keys, "seed": keys["seed"] + cell.repeat - 1} if cell.repeat > 1 else keys


def _of_retriever(experiment: CompareExperiment, cell: ComparedCell) -> RunFileKeys:
    """The keys of the run's retriever, without those that are short for a setting which its system doesn't have."""
    if not cell.retriever:
        return {}
    retriever = experiment.retrievers[cell.retriever]
    settings = msgspec.to_builtins(find_system(experiment.by_label[cell.method].system).settings())
    had = {key: value for key, value in retriever.run.items() if key not in SHORT or short_path(key, settings)}
    return had | retriever.corpus_of(cell.dataset)


# Which runs of a comparison there are, by what they need, and whether all that its file names is used.

Named = tuple[str, str]
"""A key, and what it names."""


def selected(experiment: CompareExperiment, needs: Mapping[ComparedCell, Needs]) -> Sequence[ComparedCell]:
    """The runs that there are; a system that doesn't search runs once, and not with each retriever.

    needs: of every run that there may be. Raises InputError for what is named and no run has a use for.
    """
    kept = [
        cell
        for cell, needed in needs.items()
        if not experiment.retrievers_of(cell.dataset) or needed.corpus == bool(cell.retriever)
    ]
    systems = dict.fromkeys(system.system for system in experiment.compared)
    if unused := sorted(experiment.settings.keys() - systems.keys()):
        raise InputError(f"`settings`: {nearest.unknown('system', unused[0], systems)}")
    if unused := sorted(experiment.retrievers.keys() - {cell.retriever for cell in kept}):
        raise InputError(
            f"no run searches by the retriever {unused[0]}; leave it out, or compare a system that searches"
        )
    named = dict.fromkeys(each for cell in needs for each in _named(request(experiment, cell)))
    used = {each for cell in kept for each in _used(request(experiment, cell), needs[cell])}
    for key, value in named:
        if (key, value) not in used:
            raise InputError(f"no run has a use for `{key}` {value}; leave it out, or compare a system that has")
    return kept


def _named(keys: RunKeys) -> Iterator[Named]:
    """What a run's request names that only some systems use."""
    yield from (("corpus", name) for name in named_corpora(keys))
    yield from ((key, str(keys[key])) for key in ("demonstrations", "prompt") if keys.get(key))
    engines = {**keys.get("engines", {}), **{role: keys[role] for role in ROLES if keys.get(role)}}
    yield from ((role, str(name)) for role, name in engines.items())


def _used(keys: RunKeys, needs: Needs) -> Iterator[Named]:
    """Those that a run uses; a corpus is also where gold paragraphs are looked up."""
    used = {"corpus": True, "demonstrations": bool(needs.forms), "prompt": bool(needs.words)}
    used |= {role.name: True for role in needs.engines}
    yield from ((key, value) for key, value in _named(keys) if used.get(key))


PAPER = Paper(
    file=CompareExperiment,
    stages=lambda experiment: at_once(cells(experiment)),
    request=request,
    read=read_run,
    report=report,
    select=selected,
    inputs=ComparedInputs,
    repeat=repeat_of,
)
