"""Tables of a comparison: what its runs scored, how they ended and what they cost."""

from collections.abc import Iterator, Sequence

from cotrail.common.humanize import count
from cotrail.core.ended_by import shown_ends
from cotrail.evaluation.experiments.compare.published_tables import published_tables
from cotrail.evaluation.experiments.compare.runs import ComparedRun
from cotrail.evaluation.experiments.costs import per_run, totals
from cotrail.evaluation.experiments.experiment_report import NO_RESULTS, ExperimentReport, completeness
from cotrail.evaluation.experiments.report_tables import Column, Interval, Mean, ReportTable, TableRow, Value, listing
from cotrail.evaluation.metrics.question_scores import CAVEAT
from cotrail.evaluation.metrics.registry import METRICS

LABELS = (
    Column("run", "Run"),
    Column("dataset", "Dataset"),
    Column("system", "System"),
    Column("retriever", "Retriever"),
    Column("variation", "Variation"),
    Column("model", "Model"),
    Column("corpus", "Corpus"),
    Column("k", "K", "count"),
    Column("questions", "Questions", "count"),
    Column("answered", "Answered", "count"),
)
ENDED = Column("ended", "Ended by")


def report(runs: Sequence[ComparedRun]) -> ExperimentReport:
    """The scores and costs of each run, and the published tables that they can fill."""
    if not runs:
        return ExperimentReport(summary=NO_RESULTS, tables=())
    complete = completeness([run.is_answered for run in runs])
    return ExperimentReport(summary=f"{count(len(runs), 'run')}; {complete}.", tables=tuple(_tables(runs)))


def _tables(runs: Sequence[ComparedRun]) -> Iterator[ReportTable]:
    yield from filter(None, (scores(runs),))
    yield from published_tables(runs)
    costs = per_run((run.cell.name, run.cost, len(run.answered)) for run in runs)
    yield from filter(None, (costs, totals({None: [run.cost for run in runs]})))


def scores(runs: Sequence[ComparedRun]) -> ReportTable | None:
    """All runs with their scores and what ended their questions."""
    metrics = (Column(each.name, each.title, "decimal" if each.is_count else "mean") for each in METRICS.values())
    rows = [TableRow(values={**_labels(run), **_means(run), "ended": shown_ends(run.ends) or None}) for run in runs]
    return listing("scores", "Scores", (*LABELS, *metrics, ENDED), rows, notes=(CAVEAT,))


def _means(run: ComparedRun) -> dict[str, Value]:
    """The means of a run, with their intervals where they have one."""
    return {
        name: Mean(mean=mean, interval=Interval(low=interval.low, high=interval.high))
        if mean is not None and (interval := run.intervals.get(name))
        else mean
        for name, mean in run.scores.items()
    }


def _labels(run: ComparedRun) -> dict[str, Value]:
    cell = run.cell
    return {
        "run": cell.name,
        "dataset": cell.dataset,
        "system": cell.method,
        "retriever": cell.retriever or None,
        "variation": cell.variation or None,
        "model": cell.model,
        "corpus": run.corpus,
        "k": run.retrieval_count,
        "questions": run.questions,
        "answered": len(run.answered),
    }
