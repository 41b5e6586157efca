"""IRCoT: its experiments, and their results next to the published ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from cotrail.common.humanize import count
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.questions import Question
from cotrail.data.datasets.sampling import sample_questions
from cotrail.data.demonstrations.building import Style
from cotrail.data.demonstrations.sets import RELEASED, demonstration_sets, in_form, listed_set
from cotrail.errors import DemonstrationError, InputError
from cotrail.evaluation.comparison.differences import Reach
from cotrail.evaluation.experiments.costs import RecordedQuestion, RecordedRun
from cotrail.evaluation.experiments.ircot import cells, tables
from cotrail.evaluation.experiments.ircot.cells import PRINTED, Cell, CellResult, ExampleChain
from cotrail.evaluation.experiments.ircot.protocol import DemonstrationFiles, IRCoTExperiment, IRCoTProtocol
from cotrail.evaluation.experiments.paper import Inputs, Paper, RunKeys
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
from cotrail.evaluation.metrics.corpus_coverage import coverage
from cotrail.evaluation.metrics.factual_errors import factual_errors, untrue
from cotrail.systems.parts.reading import Reader
from cotrail.systems.registry import SYSTEMS

# Questions and demonstrations of an experiment by IRCoT's protocol, read and checked.

Questions = tuple[Question, ...]


class IRCoTInputs(Inputs):
    """See `Inputs`; the questions are development and test questions, without overlap."""

    experiment: IRCoTExperiment

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._halves = cache(self._draw_halves)
        self._sets = cache(self._draw_sets)

    def files(self) -> Iterator[str]:
        for files in self.experiment.datasets.values():
            yield from filter(None, (files.questions, files.development, files.test, files.official))
        yield from self._demonstration_files()

    def notes(self) -> Iterator[str]:
        """See `Inputs`; they name corpora that lack gold paragraphs, which no system can then find."""
        for dataset, files in self.experiment.datasets.items():
            gold, missing = self.missing_gold(dataset)
            if missing:
                yield (
                    f"{dataset}: {missing:,} of {count(gold, 'gold paragraph')} aren't in the corpus {files.corpus}; "
                    "paragraph recall can't reach 1. `cotrail data build` makes a corpus that has them."
                )

    def questions(self, cell: Cell) -> Questions:
        """See `Inputs`; the development questions of a search, or the test questions."""
        return self._halves(cell.line.dataset)[0 if cell.stage == "search" else 1]

    def instructed(self, cell: Cell) -> bool:
        return bool(self.shown(cell, AnswerForm.COT).instruction)

    def shown(self, cell: Cell, form: AnswerForm) -> Demonstrations:
        """See `Inputs`; of titles empty where the dataset has none."""
        style = self.experiment.style_of(cell.line.model)
        return self._sets(cell.line.demonstrations, style, cell.distractors, form)[cell.demonstration_set - 1]

    def missing_gold(self, dataset: str) -> tuple[int, int]:
        """The number of gold paragraphs of the drawn questions, and how many of these the corpus lacks."""
        corpus = self.corpus(self.experiment.datasets[dataset].corpus)
        covered = coverage(
            [question for part in self._halves(dataset) for question in part], corpus.titled, corpus.paragraphs
        )
        return covered.gold, len(covered.missing)

    def _draw_halves(self, dataset: str) -> tuple[Questions, Questions]:
        """Development and test questions, their gold paragraphs as the corpus has them."""
        files, published_as = self.experiment.datasets[dataset], self.experiment.published_as(dataset)
        names = (files.questions or files.development or "", files.questions or files.test or "")
        development, test = (
            self._located(half, published_as, name, (files.corpus,))
            for half, name in zip(self._sample(dataset), names, strict=True)
        )
        return development, test

    def _sample(self, dataset: str) -> tuple[Questions, Questions]:
        experiment, files = self.experiment, self.experiment.datasets[dataset]
        development, test = experiment.development_questions, experiment.test_questions
        if files.questions:
            return sample_questions(self._load(dataset, files.questions), development, test, experiment.seed)
        if not (files.development and files.test):
            raise InputError(
                f"the dataset {dataset} names no question file; give `questions`, or `development` and `test`"
            )
        first, second = self._load(dataset, files.development), self._load(dataset, files.test)
        return (
            sample_questions(first, min(development, len(first)), 0, experiment.seed)[0],
            sample_questions(second, min(test, len(second)), 0, experiment.seed)[0],
        )

    def _load(self, dataset: str, path: str) -> Questions:
        files = self.experiment.datasets[dataset]
        return self._loaded(self.experiment.published_as(dataset), path, (files.corpus,), files.official)

    def _demonstration_files(self) -> Iterator[str]:
        """All files of demonstrations that runs may need."""
        styles = dict.fromkeys(map(self.experiment.style_of, self.experiment.model_names))
        for dataset, style in product(self.experiment.datasets, styles):
            files = self._files(dataset, style)
            numbered = [files.cot, files.direct]
            paths = [name.replace("{M}", str(m)) for name in numbered if name for m in self.experiment.grid.distractors]
            plain = [name for name in (files.no_context_cot, files.no_context_direct, files.titles) if name]
            yield from (*paths, *plain)
            if (sets := self.experiment.datasets[dataset].sets) not in (None, RELEASED):
                yield sets

    def _draw_sets(
        self, dataset: str, style: Style, distractors: int | None, form: AnswerForm
    ) -> tuple[Demonstrations, ...]:
        """The demonstration sets; their ids depend on the seed or lists alone, so that all forms and all M agree."""
        experiment = self.experiment
        path, bare = self._path(self._files(dataset, style), distractors, form)
        if path is None:
            return (Demonstrations(),) * experiment.demonstration_sets
        demonstrations = self._read(path)
        if form is not AnswerForm.TITLES:
            demonstrations = in_form(demonstrations, form)
        if bare:
            demonstrations = Demonstrations(items=tuple(replace(each, paragraphs=()) for each in demonstrations.items))
        lists = experiment.datasets[dataset].sets
        try:
            return self._by_seed(demonstrations) if lists is None else self._listed(demonstrations, lists)
        except DemonstrationError as error:
            raise DemonstrationError(f"{path}: {error}") from error

    def _listed(self, demonstrations: Demonstrations, lists: str) -> tuple[Demonstrations, ...]:
        where = lists if lists == RELEASED else str(self.folder / lists)
        return tuple(listed_set(demonstrations, where, n) for n in range(1, self.experiment.demonstration_sets + 1))

    def _by_seed(self, demonstrations: Demonstrations) -> tuple[Demonstrations, ...]:
        size, sets = self.experiment.demonstrations_per_set, self.experiment.demonstration_sets
        if sets > 1 and len(demonstrations.items) == size:
            raise DemonstrationError(
                f"{size} demonstrations are one set of {size}, not {sets}; set `demonstration_sets = 1`, or a smaller "
                "`demonstrations_per_set` to draw from them"
            )
        try:
            return demonstration_sets(demonstrations, self.experiment.seed, sets, size)
        except DemonstrationError as error:
            raise DemonstrationError(f"{error} (`demonstrations_per_set`)") from error

    def _path(self, files: DemonstrationFiles, distractors: int | None, form: AnswerForm) -> tuple[Path | None, bool]:
        """The file, and True if its paragraphs are left out."""
        if form is AnswerForm.TITLES:
            return (self.folder / files.titles if files.titles else None), False
        with_context = (files.direct if form is AnswerForm.DIRECT else None) or files.cot
        without = files.no_context_direct if form is AnswerForm.DIRECT else files.no_context_cot
        if distractors is None and without:
            return self.folder / without, False
        number = distractors if distractors is not None else self.experiment.grid.distractors[0]
        return self.folder / with_context.replace("{M}", str(number)), distractors is None

    def _files(self, dataset: str, style: Style) -> DemonstrationFiles:
        """The files of a style."""
        files = self.experiment.datasets[dataset].demonstrations
        if not isinstance(files, DemonstrationFiles):
            return self._released(Path(files), style)
        paths = {form: path.replace("{style}", style) for form, path in asdict(files).items() if path is not None}
        return DemonstrationFiles(**paths)

    def _released(self, folder: Path, style: Style) -> DemonstrationFiles:
        """A folder's files as the authors named theirs; the title demonstrations only where they are there."""
        titles = folder / f"no_context_open_llm_retrieval_{style}.txt"
        return DemonstrationFiles(
            cot=str(folder / f"gold_with_{{M}}_distractors_context_cot_qa_{style}.txt"),
            direct=str(folder / f"gold_with_{{M}}_distractors_context_direct_qa_{style}.txt"),
            no_context_cot=str(folder / f"no_context_cot_qa_{style}.txt"),
            no_context_direct=str(folder / f"no_context_direct_qa_{style}.txt"),
            titles=str(titles) if (self.folder / titles).is_file() else None,
        )


AXES: dict[cells.Goal, str] = {"retrieval": "Paragraph recall", "qa": "Answer F1"}

Points = dict[cells.Line, ChartPoint]
PanelPoints = dict[tuple[str, str], ChartPoint]
"""Points of a panel by system and label."""


def build_charts(results: Sequence[cells.CellResult]) -> tuple[Chart, ...]:
    """Build all charts for which there are results, in the paper's order."""
    retrieval: tuple[tables.CellResults, cells.Goal] = (results, "retrieval")
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


def _bars(
    name: str, title: str, results: tables.CellResults, goal: cells.Goal, *, transfer: bool = False
) -> Chart | None:
    points = {
        line: point
        for line, point in _points(results, goal).items()
        if (line.demonstrations != line.dataset) == transfer
    }
    return _grouped(name, title, AXES[goal], points, beside_table_4=goal == "qa" and not transfer)


def _errors(results: tables.CellResults) -> Chart | None:
    points = {
        line: point_of_share(share.count, share.of, runs=tables.run_names(runs))
        for line, runs in tables.runs_by_line(results).items()
        if line.goal == "qa" and line.demonstrations == line.dataset and (share := tables.annotated(runs))
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


def _scaling(name: str, title: str, results: tables.CellResults, goal: cells.Goal) -> Chart | None:
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


def _points(results: tables.CellResults, goal: cells.Goal) -> Points:
    lines = {line: runs for line, runs in tables.runs_by_line(results).items() if line.goal == goal}
    means = {line: tables.mean_score(runs, tables.METRICS[goal]) for line, runs in lines.items()}
    return {
        line: point_of(mean.mean, mean.interval, answered=mean.answered, runs=tables.run_names(lines[line]))
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
        f"{completeness([tables.is_answered(result) for result in results])}. {PRINTED.said}"
    )
    return ExperimentReport(summary=summary, tables=tables.build_tables(results), plots=build_charts(results))


PAPER = Paper(
    file=IRCoTExperiment,
    stages=lambda experiment: IRCoTProtocol(experiment, SYSTEMS).stages(),
    request=request,
    read=read_cell,
    report=report,
    inputs=IRCoTInputs,
    pinned=(),
)
