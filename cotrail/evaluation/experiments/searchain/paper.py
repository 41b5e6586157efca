"""Search-in-the-Chain: its experiment file (section 4.1), and its runs: the method and its ablations (section 4.2)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Annotated, Any

from msgspec import Meta, field
from msgspec.structs import asdict

from cotrail.common.humanize import Positive, Temperature
from cotrail.evaluation.experiments import paper, report_tables
from cotrail.evaluation.experiments.costs import spending
from cotrail.evaluation.experiments.searchain.runs import (
    Effect,
    SearChainRun,
    citations,
    effect,
    efficiency,
    nodes_by_hops,
    read_run,
    sources,
)
from cotrail.evaluation.experiments.sources import dataset_title, printed

SearChainRuns = Sequence[SearChainRun]

PRINTED = printed("searchain")
LAYOUTS = PRINTED.layouts

WITHOUT_IR = "without-retrieval"

METHODS: Mapping[str, str] = PRINTED.names["methods"]
"""The paper's names of the whole method, and of it with one thing left out."""


def report(runs: SearChainRuns) -> report_tables.ExperimentReport:
    """The tables of Search-in-the-Chain."""
    summary = report_tables.summary_of([run.is_answered for run in runs], *LAYOUTS["runs"].notes, PRINTED.said)
    return report_tables.ExperimentReport(summary=summary, tables=build_tables(runs))


def build_tables(runs: SearChainRuns) -> tuple[report_tables.ReportTable, ...]:
    """Build all tables for which there are runs."""
    tables = (
        LAYOUTS["runs"].filled([_overview(run) for run in runs]),
        _by_dataset("performance", [(run, run.score) for run in runs], *LAYOUTS["runs"].notes),
        LAYOUTS["sources"].filled([_sources(run) for run in _of("", runs) if sources(run.trees).nodes]),
        LAYOUTS["effect"].filled(
            [_own(run, {"label": dataset_title(run.dataset), **asdict(effect)}) for run, effect in _effects(runs)]
        ),
        _misled(runs),
        LAYOUTS["steps"].filled(_steps(runs)),
        LAYOUTS["efficiency"].filled([row for run in runs if (row := _efficiency(run))]),
        LAYOUTS["marks"].filled(
            [_citations(run) for run in runs if run.variation != "without-retrieval" and run.trees]
        ),
        *spending([(run.id, run.cost, run.answered) for run in runs]),
    )
    return tuple(table for table in tables if table)


def _misled(runs: SearChainRuns) -> report_tables.ReportTable | None:
    """How often retrieval makes a right answer wrong (table 4); not of long answers, which aren't right or wrong."""
    effects = [(run, effect) for run, effect in _effects(runs) if effect.right and not run.scores_overlap]
    return _by_dataset("misled", [(run, effect.misled / effect.right) for run, effect in effects])


def _steps(runs: SearChainRuns) -> list[report_tables.TableRow]:
    """Nodes of chains without retrieval, by hops (table 5)."""
    numbers = [(run, nodes_by_hops(run.questions)) for run in _of(WITHOUT_IR, runs)]
    return [_own(run, {str(hops): mean for hops, mean in by_hops.items()}) for run, by_hops in numbers if by_hops]


def _of(variation: str, runs: SearChainRuns) -> list[SearChainRun]:
    return [run for run in runs if run.variation == variation]


def _effects(runs: SearChainRuns) -> list[tuple[SearChainRun, Effect]]:
    """The effect of retrieval on each run of the whole method whose questions were also asked without it."""
    alone = {(run.dataset, run.model): run.questions for run in _of(WITHOUT_IR, runs)}
    effects = [(run, effect(run.questions, alone.get((run.dataset, run.model), ()))) for run in _of("", runs)]
    return [(run, measured) for run, measured in effects if measured]


def _overview(run: SearChainRun) -> report_tables.TableRow:
    values: dict[str, report_tables.Value] = {
        "dataset": dataset_title(run.dataset),
        "corpus": run.corpus,
        "reader": _named(tree.reader for tree in run.trees if run.corpus),
        "duplicates": _named(tree.duplicates for tree in run.trees if run.corpus),
        "questions": len(run.questions),
        "answered": run.answered,
        "score": run.score,
        "stated": run.stated,
    }
    return _own(run, values)


def _sources(run: SearChainRun) -> report_tables.TableRow:
    measured = sources(run.trees)
    shares = {"llm": measured.model, "corrected": measured.corrected, "completed": measured.completed}
    values: dict[str, report_tables.Value] = {name: count / measured.nodes for name, count in shares.items()}
    return _own(run, {"label": dataset_title(run.dataset), "nodes": measured.nodes, **values})


def _efficiency(run: SearChainRun) -> report_tables.TableRow | None:
    measured = efficiency(run.questions)
    if measured is None:
        return None
    seconds = run.cost.asked.seconds / run.answered if run.cost and run.answered else None
    return _own(run, {**asdict(measured), "seconds": seconds})


def _citations(run: SearChainRun) -> report_tables.TableRow:
    measured = citations(run.questions)
    shares = {
        "marked": _share(measured.marked, measured.contents),
        "gold": _share(measured.gold, measured.references),
        "named": _share(measured.named, measured.path),
    }
    return _own(run, asdict(measured) | shares)


def _share(count: int, of: int) -> float | None:
    return count / of if of else None


def _own(run: SearChainRun, values: Mapping[str, report_tables.Value]) -> report_tables.TableRow:
    return report_tables.TableRow(values={"label": METHODS[run.variation], "model": run.model, "run": run.id, **values})


def _named(names: Iterable[str]) -> str | None:
    return ", ".join(dict.fromkeys(filter(None, names))) or None


def _by_dataset(
    name: str, placed: Sequence[tuple[SearChainRun, float]], *notes: str
) -> report_tables.ReportTable | None:
    """A table with a column for each dataset, and a row for each method and model."""
    datasets = dict.fromkeys(run.dataset for run, _ in placed)
    own = report_tables.merged_rows(
        ({"label": METHODS[run.variation], "model": run.model}, {run.dataset: value}, (run.id,))
        for run, value in placed
    )
    columns = [report_tables.Column(dataset, dataset_title(dataset), "percent") for dataset in datasets]
    return LAYOUTS[name].filled(own, *notes, across=columns)


SYSTEM = "searchain"

SETTINGS: Mapping[str, Mapping[str, Any]] = PRINTED.names["variations"]
"""What a run leaves out, empty for nothing, and the settings of the system that define it."""


class SearChainFiles(paper.DatasetFiles, frozen=True, kw_only=True):
    """Location of a dataset's questions, and the corpus that is searched for them.

    corpus: name of the indexed corpus. test_questions: number drawn from the file, by the experiment's seed; all by
    default. settings: further settings of the system on this dataset, over those of the experiment.
    """

    corpus: str
    test_questions: Positive | None = None
    settings: dict[str, Any] = field(default_factory=dict)


class SearChainExperiment(paper.Experiment, frozen=True, kw_only=True, tag=SYSTEM):
    """An experiment of Search-in-the-Chain.

    extractor, duplicate_rater, embedder: the models that the system's settings ask for; see a run's request.
    temperature: of the language model. settings: further settings of the system, under its name.
    """

    datasets: Annotated[dict[str, SearChainFiles], Meta(min_length=1)]
    models: tuple[str, ...] = ()
    extractor: str | None = None
    duplicate_rater: str | None = None
    embedder: str | None = None
    temperature: Temperature = 0.0

    def __post_init__(self) -> None:
        if unknown := sorted(self.settings.keys() - {SYSTEM}):
            raise ValueError(f"there are settings of {unknown[0]!r}, and the only system of the protocol is {SYSTEM}")


def trials(experiment: SearChainExperiment) -> tuple[paper.GridCell, ...]:
    """The runs that the experiment's tables need, in the order of its file."""
    return tuple(
        paper.GridCell(dataset=dataset, model=model, method=SYSTEM, variation=variation)
        for model, dataset, variation in product(experiment.models, experiment.datasets, SETTINGS)
    )


def request(experiment: SearChainExperiment, trial: paper.GridCell) -> paper.RunKeys:
    """The request of a run."""
    files = experiment.datasets[trial.dataset]
    return experiment.request(
        SYSTEM,
        files.settings,
        SETTINGS[trial.variation],
        dataset=files.format or trial.dataset,
        questions=files.questions,
        corpus=files.corpus,
        model=trial.model,
        temperature=experiment.temperature,
        extractor=experiment.extractor,
        duplicate_rater=experiment.duplicate_rater,
        embedder=experiment.embedder,
    )


PAPER = paper.Paper(
    file=SearChainExperiment,
    stages=lambda experiment: paper.at_once(trials(experiment)),
    request=request,
    read=read_run,
    report=report,
    inputs=paper.GoldAsPublished,
    pinned=("embedders", "pins"),
)
