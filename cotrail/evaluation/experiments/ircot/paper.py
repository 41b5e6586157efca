"""IRCoT: its experiments, and their results next to the published ones."""

from collections.abc import Iterable, Mapping, Sequence

from cotrail.common.humanize import count
from cotrail.evaluation.comparison.differences import Reach
from cotrail.evaluation.experiments.costs import RecordedQuestion, RecordedRun
from cotrail.evaluation.experiments.ircot import cells
from cotrail.evaluation.experiments.ircot.cells import PRINTED, Cell, CellResult, ExampleChain
from cotrail.evaluation.experiments.ircot.inputs import IRCoTInputs
from cotrail.evaluation.experiments.ircot.protocol import IRCoTExperiment, IRCoTProtocol
from cotrail.evaluation.experiments.ircot.tables import (
    METRICS,
    CellResults,
    annotated,
    build_tables,
    is_answered,
    mean_score,
    run_names,
    runs_by_line,
)
from cotrail.evaluation.experiments.paper import Paper, RunKeys
from cotrail.evaluation.experiments.report_tables import (
    Chart,
    ChartPoint,
    ExperimentReport,
    Panel,
    Series,
    TableRow,
    completeness,
    point_of,
    point_of_share,
)
from cotrail.evaluation.metrics.factual_errors import factual_errors, untrue
from cotrail.systems.parts.reading import Reader
from cotrail.systems.registry import SYSTEMS

AXES: dict[cells.Goal, str] = {"retrieval": "Paragraph recall", "qa": "Answer F1"}

Points = dict[cells.Line, ChartPoint]
PanelPoints = dict[tuple[str, str], ChartPoint]
"""Points of a panel by system and label."""


def build_charts(results: Sequence[cells.CellResult]) -> tuple[Chart, ...]:
    """Build all charts for which there are results, in the paper's order."""
    retrieval: tuple[CellResults, cells.Goal] = (results, "retrieval")
    plots = (
        _bars("figure-3-recall", "Paragraph recall (figure 3)", *retrieval),
        _bars("figure-4-answers", "Answer F1 (figure 4)", results, "qa"),
        _bars(
            "figure-5-recall-ood",
            "Paragraph recall out of distribution (figure 5)",
            results,
            "retrieval",
            transfer=True,
        ),
        _bars("figure-6-answers-ood", "Answer F1 out of distribution (figure 6)", results, "qa", transfer=True),
        _errors(results),
        _scaling("figure-8-recall-by-model", "Paragraph recall by model (figure 8)", *retrieval),
        _scaling("figure-9-answers-by-model", "Answer F1 by model (figure 9)", results, "qa"),
    )
    return tuple(plot for plot in plots if plot)


def _bars(name: str, title: str, results: CellResults, goal: cells.Goal, *, transfer: bool = False) -> Chart | None:
    points = {
        line: point
        for line, point in _points(results, goal).items()
        if (line.demonstrations != line.dataset) == transfer
    }
    return _grouped(name, title, AXES[goal], points, beside_table_4=goal == "qa" and not transfer)


def _errors(results: CellResults) -> Chart | None:
    points = {
        line: point_of_share(share.count, share.of, runs=run_names(runs))
        for line, runs in runs_by_line(results).items()
        if line.goal == "qa" and line.demonstrations == line.dataset and (share := annotated(runs))
    }
    axis = "% of the annotated chains"
    return _grouped("figure-7-errors", "Chains with an untrue sentence (figure 7)", axis, points)


def _grouped(name: str, title: str, axis: str, points: Points, *, beside_table_4: bool = False) -> Chart | None:
    """Bar chart: a panel per model and reader, a group of bars per dataset or pair, a bar per system."""
    keys = dict.fromkeys((line.model, line.reader) for line in points)
    panels = tuple(_panel(*key, points, beside_table_4=beside_table_4) for key in keys)
    return Chart(name=name, title=title, axis=axis, kind="bars", panels=panels) if panels else None


def _panel(model: str, reader: str, points: Points, *, beside_table_4: bool) -> Panel:
    own: PanelPoints = {
        (x.system, cells.place_of(x)): point for x, point in points.items() if (x.model, x.reader) == (model, reader)
    }
    places = cells.in_order(place for _, place in own)
    systems = [system for system in cells.SYSTEMS if any(system == each for each, _ in own)]
    series = [_series(name, (own.get((name, place)) for place in places)) for name in systems]
    reported = [
        _series(_said(row, "system"), (_reported(row, place) for place in places), _said(row, "model"))
        for row in (_table_4(reader, systems) if beside_table_4 else ())
        if cells.printed_means(row).keys() & places
    ]
    return Panel(
        title=model if reader == "none" else f"{model}, {cells.READERS[reader]} reader",
        labels=tuple(cells.place_title(place) + _star(own, place) for place in places),
        series=(*series, *reported),
    )


def _series(system: str, points: Iterable[ChartPoint | None], published: str = "") -> Series:
    return Series(system=cells.SYSTEMS[system], shade=cells.SHADES[system], points=tuple(points), published=published)


def _star(own: PanelPoints, label: str) -> str:
    """Asterisk for labels with unanswered questions."""
    return "" if all(point.answered for (_, each), point in own.items() if each == label) else " *"


def _scaling(name: str, title: str, results: CellResults, goal: cells.Goal) -> Chart | None:
    """Line chart: a panel per dataset and reader, a line per system, models by size; None for a single model."""
    points = {
        line: point
        for line, point in _points(results, goal).items()
        if line.demonstrations == line.dataset and line.system != "no-retrieval"
    }
    if len({line.model for line in points}) < 2:
        return None
    datasets = cells.in_order(line.dataset for line in points)
    panels = [
        _curves(dataset, readers, points)
        for readers in _readers(points)
        for dataset in datasets
        if any(line.dataset == dataset and line.reader in readers for line in points)
    ]
    return Chart(name=name, title=title, axis=AXES[goal], kind="lines", panels=tuple(panels))


def _readers(points: Points) -> tuple[tuple[Reader, ...], ...]:
    """Group readers into panels: one for all if each model has its own reader, as in the paper; else one per reader."""
    readers = tuple(dict.fromkeys(line.reader for line in points))
    each_has_one = len({(line.model, line.reader) for line in points}) == len({line.model for line in points})
    return (readers,) if each_has_one else tuple((reader,) for reader in readers)


def _curves(dataset: str, readers: tuple[Reader, ...], points: Points) -> Panel:
    lines = {x: point for x, point in points.items() if x.dataset == dataset and x.reader in readers}
    own: PanelPoints = {(x.system, x.model): point for x, point in lines.items()}
    systems = [system for system in cells.SYSTEMS if any(system == each for each, _ in own)]
    read_by: dict[str, Reader] = {x.model: x.reader for x in lines}
    theirs: list[TableRow] = []
    if sized := all(cells.parameters(model) for model in read_by):
        theirs = [row for row in _read_alike(readers, read_by, systems) if dataset in cells.printed_means(row)]
        model_keys = {cells.model_key(model) for model in read_by}
        missing = [row for row in theirs if cells.model_key(_said(row, "model")) not in model_keys]
        read_by |= {_said(row, "model"): cells.NAMES.readers[_said(row, "model")] for row in missing}
    models = sorted(read_by, key=lambda model: cells.parameters(model) or 0) if sized else list(read_by)
    keys = list(map(cells.model_key, models))
    series = [_series(name, (own.get((name, model)) for model in models)) for name in systems]
    reported = [
        _series(
            _said(row, "system"),
            (_reported(row, dataset) if key == cells.model_key(_said(row, "model")) else None for key in keys),
            _said(row, "model"),
        )
        for row in theirs
    ]
    shared = readers[0] if len(readers) == 1 else "none"
    suffixes = {model: "" if len(readers) == 1 else f", {cells.READERS[reader]}" for model, reader in read_by.items()}
    return Panel(
        title=cells.place_title(dataset) + ("" if shared == "none" else f", {cells.READERS[shared]} reader"),
        labels=tuple(_sized(model) + suffixes[model] + _star(own, model) for model in models),
        series=(*series, *reported),
    )


def _read_alike(readers: Sequence[Reader], read_by: Mapping[str, Reader], systems: Sequence[str]) -> list[TableRow]:
    """Published rows for a panel: those of its reader, or of each model's own reader if it has several."""
    if len(readers) == 1:
        return _table_4(readers[0], systems)
    own = {cells.model_key(model): reader for model, reader in read_by.items()}
    rows = [row for reader in readers for row in _table_4(reader, systems)]
    return [row for row in rows if _said(row, "reader") == _reader_of(_said(row, "model"), own)]


def _reader_of(model: str, own: Mapping[str, Reader]) -> Reader:
    return own.get(cells.model_key(model), cells.NAMES.readers[model])


def _table_4(reader: str, systems: Sequence[str]) -> list[TableRow]:
    rows = cells.LAYOUTS["readers"].rows
    return [row for row in rows if _said(row, "reader") == reader and _said(row, "system") in systems]


def _said(row: TableRow, label: str) -> str:
    return str(row.values[label])


def _sized(model: str) -> str:
    """The model's name, with its size where the name is one of the paper's."""
    sizes = {cells.model_key(name): size for name, size in cells.NAMES.parameters.items()}
    size = sizes.get(cells.model_key(model))
    return f"{model} ({size:g}B)" if size else model


def _points(results: CellResults, goal: cells.Goal) -> Points:
    lines = {line: runs for line, runs in runs_by_line(results).items() if line.goal == goal}
    means = {line: mean_score(runs, METRICS[goal]) for line, runs in lines.items()}
    return {
        line: point_of(mean.mean, mean.interval, answered=mean.answered, runs=run_names(lines[line]))
        for line, mean in means.items()
        if mean and (goal == "retrieval" or line.reader != "none")
    }


def _reported(row: TableRow, place: str) -> ChartPoint | None:
    mean = cells.printed_means(row).get(place)
    return None if mean is None else ChartPoint(value=100 * mean)


def request(experiment: IRCoTExperiment, cell: Cell) -> RunKeys:
    """The request of a run."""
    line, files = cell.line, experiment.datasets[cell.line.dataset]
    return experiment.request(
        line.system,
        dataset=experiment.published_as(line.dataset),
        questions=files.questions or "",
        official=files.official,
        reader=line.reader,
        corpus=files.corpus,
        retrieval_count=cell.retrieval_count,
        model=line.model,
        temperature=experiment.temperature,
    )


def read_cell(cell: Cell, run: RecordedRun) -> CellResult:
    """The results of a recorded run."""
    all_of_it = tuple(run.questions)
    questions = [each for each in all_of_it if each.asked]
    may_be_shown = cell.stage == "test" and cell.line.reader == "cot" and cell.demonstration_set == 1
    marked = {chain.question_id: untrue(chain) for chain in run.annotations}
    return CellResult(
        cell=cell,
        run=run.id,
        scores={question.key: question.scores for question in questions},
        kinds={question.key: question.kinds for question in questions},
        finished=run.finished,
        reach=Reach(ended={each.key: each.ended for each in all_of_it}, until=run.until),
        unasked=run.unasked,
        cost=run.cost,
        factual_errors=factual_errors(run.annotations),
        chains={each.key: _chain(each, marked) for each in questions if each.chain and may_be_shown},
    )


def _chain(question: RecordedQuestion, marked: Mapping[str, frozenset[int]]) -> ExampleChain:
    return ExampleChain(
        question=question.text,
        answers=question.answers,
        sentences=question.chain,
        untrue=marked.get(question.key, frozenset()),
    )


def report(results: Sequence[CellResult]) -> ExperimentReport:
    """IRCoT's tables and figures."""
    searches = sum(result.cell.stage == "search" for result in results)
    summary = (
        f"{count(searches, 'run')} on the development questions and {len(results) - searches:,} on the test questions; "
        f"{completeness([is_answered(result) for result in results])}. {PRINTED.said}"
    )
    return ExperimentReport(summary=summary, tables=build_tables(results), plots=build_charts(results))


PAPER = Paper(
    file=IRCoTExperiment,
    stages=lambda experiment: IRCoTProtocol(experiment, SYSTEMS).stages(),
    request=request,
    read=read_cell,
    report=report,
    inputs=IRCoTInputs,
    pinned=(),
)
