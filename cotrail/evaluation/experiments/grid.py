"""A free grid of runs, by no paper: systems x models x datasets x variations, and a table of their scores."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from cotrail.common import nearest
from cotrail.common.humanize import count
from cotrail.common.numbers import Positive
from cotrail.common.trees import merged
from cotrail.evaluation.experiments.costs import Cost, per_run, totals
from cotrail.evaluation.experiments.experiment_file import Experiment, ExperimentName, Temperature
from cotrail.evaluation.experiments.experiment_report import NO_RESULTS, ExperimentReport, completeness
from cotrail.evaluation.experiments.inputs import RunKeys
from cotrail.evaluation.experiments.paper import Paper
from cotrail.evaluation.experiments.recorded_runs import RecordedRun
from cotrail.evaluation.experiments.report_tables import Column, ReportTable, TableRow, listing
from cotrail.evaluation.experiments.stages import GridCell, at_once
from cotrail.evaluation.metrics.question_scores import CAVEAT, mean_scores
from cotrail.evaluation.metrics.registry import METRICS

LABELS = (
    Column("run", "Run"),
    Column("dataset", "Dataset"),
    Column("system", "System"),
    Column("variation", "Variation"),
    Column("model", "Model"),
    Column("questions", "Questions", "count"),
    Column("answered", "Answered", "count"),
)


class GridFiles(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Location of a dataset's questions, and what is searched and shown for them.

    corpus: name of the indexed corpus. demonstrations: a file of these. format: of the question file; the dataset's
    name by default. test_questions: number drawn from the file, by the experiment's seed; all by default.
    """

    questions: str
    corpus: str | None = None
    demonstrations: str | None = None
    format: str | None = None
    test_questions: Positive | None = None


class Variation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What some runs have otherwise.

    systems: those that it is tried with; all by default. run: keys of their run files.
    """

    name: ExperimentName
    systems: tuple[str, ...] | None = None
    run: dict[str, Any]


class GridExperiment(Experiment, frozen=True, kw_only=True, tag="grid"):
    """A free grid.

    run: keys of the run files of all runs. variations: each system is also tried as it is.
    """

    datasets: Annotated[dict[str, GridFiles], Meta(min_length=1)]
    models: tuple[str, ...] = ()
    systems: Annotated[tuple[str, ...], Meta(min_length=1)]
    temperature: Temperature = 0.0
    run: dict[str, Any] = field(default_factory=dict)
    variations: tuple[Variation, ...] = ()

    def __post_init__(self) -> None:
        names = [variation.name for variation in self.variations]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"there are two variations {twice[0]}; give each a name of its own")
        for variation in self.variations:
            if unknown := set(variation.systems or ()) - set(self.systems):
                raise ValueError(f"variation {variation.name}: {nearest.unknown('system', min(unknown), self.systems)}")


class GridRun(Struct, frozen=True, kw_only=True):
    """The results of a run; scores: the mean of each metric, None where no question has it."""

    cell: GridCell
    questions: int
    answered: int
    scores: Mapping[str, float | None]
    cost: Cost


def cells(experiment: GridExperiment) -> Iterator[GridCell]:
    """Yield all runs, in the order of the file."""
    for model in experiment.models:
        for dataset in experiment.datasets:
            for system in experiment.systems:
                yield GridCell(dataset=dataset, model=model, method=system)
                for variation in experiment.variations:
                    if variation.systems is None or system in variation.systems:
                        yield GridCell(dataset=dataset, model=model, method=system, variation=variation.name)


def request(experiment: GridExperiment, cell: GridCell) -> RunKeys:
    """The request of a run: what a variation names goes before what all runs have."""
    files = experiment.datasets[cell.dataset]
    shared = experiment.request(
        cell.method,
        dataset=files.format or cell.dataset,
        questions=files.questions,
        corpus=files.corpus,
        demonstrations=files.demonstrations,
        model=cell.model,
        temperature=experiment.temperature,
    )
    varied = {variation.name: variation.run for variation in experiment.variations}
    return merged(merged(shared, experiment.run), varied.get(cell.variation, {}))


def read_run(cell: GridCell, run: RecordedRun) -> GridRun:
    """The results of a recorded run."""
    scores = [question.scores for question in run.questions]
    return GridRun(
        cell=cell,
        questions=len(scores),
        answered=run.finished,
        scores=mean_scores(scores).metrics,
        cost=run.cost,
    )


def report(runs: Sequence[GridRun]) -> ExperimentReport:
    """The scores of each run, and what they cost."""
    if not runs:
        return ExperimentReport(summary=NO_RESULTS, tables=())
    complete = completeness([run.answered == run.questions for run in runs])
    return ExperimentReport(summary=f"{count(len(runs), 'run')}; {complete}.", tables=tuple(_tables(runs)))


def _tables(runs: Sequence[GridRun]) -> Iterator[ReportTable]:
    metrics = (Column(each.name, each.title, "decimal" if each.is_count else "mean") for each in METRICS.values())
    rows = [TableRow(values={**_labels(run), **run.scores}) for run in runs]
    costs = per_run((run.cell.name, run.cost, run.answered) for run in runs)
    tables = (
        listing("scores", "Scores", (*LABELS, *metrics), rows, notes=(CAVEAT,)),
        costs,
        totals({None: [run.cost for run in runs]}),
    )
    yield from filter(None, tables)


def _labels(run: GridRun) -> dict[str, Any]:
    cell = run.cell
    return {
        "run": cell.name,
        "dataset": cell.dataset,
        "system": cell.method,
        "variation": cell.variation or None,
        "model": cell.model,
        "questions": run.questions,
        "answered": run.answered,
    }


PAPER = Paper(
    file=GridExperiment,
    stages=lambda experiment: at_once(cells(experiment)),
    request=request,
    read=read_run,
    report=report,
)
