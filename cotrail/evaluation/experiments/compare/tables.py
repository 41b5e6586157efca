"""Tables of a comparison: what its runs scored, how they ended and what they cost."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from cotrail.core.history import shown_ends
from cotrail.evaluation.experiments.compare.experiment import ComparedRun
from cotrail.evaluation.experiments.compare.published_tables import published_tables
from cotrail.evaluation.experiments.compare.recommended import DatasetChoice, choices, recommendation_table, sentence
from cotrail.evaluation.experiments.costs import PER_ASKED_NOTE, per_run, totals
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
from cotrail.evaluation.experiments.sources import printed
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.question_scores import CAVEAT, LEFT_OVER_CAVEAT
from cotrail.evaluation.metrics.registry import METRICS, main_metrics
from cotrail.evaluation.metrics.repeated_scores import REPEATS_CAVEAT, repeated_scores

LAYOUTS = printed("compare").layouts


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
    return {name: _mean(mean, run.intervals.get(name)) for name, mean in run.scores.items() if mean is not None}


def _mean(mean: float, interval: ConfidenceInterval | None) -> Mean:
    return Mean(mean=mean, interval=shown_interval(interval))


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
