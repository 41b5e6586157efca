"""Experiment file of a free comparison, and its runs: systems x models x datasets x retrievers x variations."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from cotrail.common import nearest
from cotrail.common.humanize import Positive, Temperature
from cotrail.core.repeats import Repeat, Times
from cotrail.evaluation.comparison.differences import Reach
from cotrail.evaluation.experiments.costs import Cost, QuestionCost, RecordedRun, Work
from cotrail.evaluation.experiments.paper import DatasetFiles, Experiment, ExperimentName, GridCell
from cotrail.evaluation.metrics.confidence_intervals import ConfidenceInterval
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.evaluation.metrics.question_scores import mean_scores
from cotrail.evaluation.metrics.stop_rules import interval_of
from cotrail.systems.parts.prompting import short_path

Corpora = str | tuple[str, ...]
"""The name of an indexed corpus, or of several that are searched together."""

RunFileKeys = dict[str, Any]
"""Keys of a run file."""


class ComparedFiles(DatasetFiles, frozen=True, kw_only=True):
    """Location of a dataset's questions, and what is searched and shown for them.

    corpus: name of the indexed corpus; corpora: of several. demonstrations: a file of these.
    test_questions: number drawn from the file, by the experiment's seed; all by default.
    """

    corpus: str | None = None
    corpora: tuple[str, ...] = ()
    demonstrations: str | None = None
    test_questions: Positive | None = None

    def __post_init__(self) -> None:
        if self.corpus is not None and self.corpora:
            raise ValueError("`corpus` names the only one, `corpora` several; give one of the two")


class Retriever(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A way to search.

    corpus: of all datasets, or by dataset; the datasets' own by default. run: keys of the run files of its runs.
    """

    corpus: str | dict[str, Corpora] | None = None
    run: RunFileKeys = field(default_factory=dict)

    def searches(self, dataset: str) -> bool:
        """Return whether it is tried on a dataset: where it names a corpus by dataset, only on those."""
        return not isinstance(self.corpus, dict) or dataset in self.corpus

    def corpus_of(self, dataset: str) -> RunFileKeys:
        """The keys that name its corpora for a dataset; empty for the dataset's own."""
        corpus = self.corpus[dataset] if isinstance(self.corpus, dict) else self.corpus
        if corpus is None:
            return {}
        return {"corpus": corpus} if isinstance(corpus, str) else {"corpora": corpus}


class ComparedSystem(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A system that is compared. name: of its row; the system's by default. run: keys of its run files."""

    system: str
    name: ExperimentName | None = None
    run: RunFileKeys = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Its name in the experiment."""
        return self.name or self.system


class Variation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What some runs have otherwise.

    systems: those that it is tried with; all by default. run: keys of their run files.
    """

    name: ExperimentName
    systems: tuple[str, ...] | None = None
    run: RunFileKeys


class CompareExperiment(Experiment, frozen=True, kw_only=True, tag="compare"):
    """A free comparison.

    systems: names, or tables that also say how a system runs. run: keys of the run files of all runs.
    retrievers: by name; the corpora of the datasets are the only ones without. variations: each system is also tried as
        it is. repeat: how often each run is done, every time with the next seed.
    """

    datasets: Annotated[dict[str, ComparedFiles], Meta(min_length=1)]
    models: tuple[str, ...] = ()
    systems: Annotated[tuple[str | ComparedSystem, ...], Meta(min_length=1)]
    retrievers: dict[ExperimentName, Retriever] = field(default_factory=dict)
    temperature: Temperature = 0.0
    run: RunFileKeys = field(default_factory=dict)
    variations: tuple[Variation, ...] = ()
    repeat: Times = 1

    def __post_init__(self) -> None:
        _refuse_twice("system", [system.label for system in self.compared])
        _refuse_twice("variation", [variation.name for variation in self.variations])
        for variation in self.variations:
            _refuse_unknown("system", variation.systems or (), self.by_label, f"variation {variation.name}")
        for name, retriever in self.retrievers.items():
            if isinstance(retriever.corpus, dict):
                _refuse_unknown("dataset", retriever.corpus, self.datasets, f"retriever {name}")

    @property
    def compared(self) -> tuple[ComparedSystem, ...]:
        """The systems, in the order of the file."""
        return tuple(ComparedSystem(system=each) if isinstance(each, str) else each for each in self.systems)

    @property
    def by_label(self) -> Mapping[str, ComparedSystem]:
        """The systems by their names in the experiment."""
        return {system.label: system for system in self.compared}

    def retrievers_of(self, dataset: str) -> tuple[str, ...]:
        """The retrievers that are tried on a dataset; none where its own corpus is the only one."""
        return tuple(name for name, retriever in self.retrievers.items() if retriever.searches(dataset))


class ComparedCell(GridCell, frozen=True, kw_only=True):
    """A run; method: the system's name in the experiment. retriever: empty for the dataset's own corpus, or none.

    repeat: its number among those that differ only in their seeds.
    """

    retriever: str = ""
    repeat: int = 1

    @property
    def label(self) -> str:
        """What is compared of its dataset and model, e.g. `ircot/dense/short/repeat-2`."""
        repeat = f"repeat-{self.repeat}" if self.repeat > 1 else ""
        return "/".join(filter(None, (self.method, self.retriever, self.variation, repeat)))

    @property
    def name(self) -> str:
        """Name of the run in its experiment, e.g. `hotpotqa/llama/ircot/dense/short`."""
        return f"{self.dataset}/{self.model}/{self.label}"

    @property
    def first(self) -> str:
        """The name of the first repeat."""
        return replace(self, repeat=1).name


def cells(experiment: CompareExperiment) -> Iterator[ComparedCell]:
    """Yield all runs that there may be, in the order of the file: each with every retriever, and without any."""
    for model in experiment.models:
        for dataset in experiment.datasets:
            for system in experiment.by_label:
                for retriever in ("", *experiment.retrievers_of(dataset)):
                    for variation in _variations(experiment, system):
                        cell = ComparedCell(
                            dataset=dataset, model=model, method=system, retriever=retriever, variation=variation
                        )
                        yield from (replace(cell, repeat=number) for number in range(1, experiment.repeat + 1))


def repeat_of(experiment: CompareExperiment, cell: ComparedCell) -> Repeat | None:
    """Which repeat a run is; None where each run is done once."""
    once = experiment.repeat == 1
    return None if once else Repeat(of=cell.first, number=cell.repeat, times=experiment.repeat)


def _variations(experiment: CompareExperiment, system: str) -> Iterator[str]:
    yield ""
    for variation in experiment.variations:
        if variation.systems is None or system in variation.systems:
            yield variation.name


def _refuse_twice(what: str, names: list[str]) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"there are two {what}s {twice[0]}; give each a name of its own")


def _refuse_unknown(what: str, names: Any, known: Mapping[str, Any], where: str) -> None:
    if unknown := set(names) - known.keys():
        raise ValueError(f"{where}: {nearest.unknown(what, min(unknown), known)}")


class ComparedRun(Struct, frozen=True, kw_only=True):
    """The results of a run.

    settings: of its system, as JSON. dataset: the format of its questions, by which published figures are found.
    corpus: None if nothing is retrieved. answered: the scores of the questions that have an answer, by their keys.
    reach: how far it is with all its questions. asked: the scores of those that weren't cancelled or left over by a
        rule or a budget, by their keys; costs: of these, by their keys.
    scores: the mean of each metric over these, None where none has it; intervals: of these means, which hold at every
        stop where questions were left over.
    ends: the number of questions by what ended them.
    """

    cell: ComparedCell
    system: str
    settings: Mapping[str, Any]
    dataset: str
    corpus: str | None
    reach: Reach
    answered: Mapping[str, QuestionScores]
    scores: Mapping[str, float | None]
    cost: Cost
    ends: Mapping[str, int] = {}
    asked: Mapping[str, QuestionScores] = {}
    costs: Mapping[str, QuestionCost] = {}
    intervals: Mapping[str, ConfidenceInterval | None] = {}

    @property
    def questions(self) -> int:
        """The number of its questions."""
        return len(self.reach.ended)

    @property
    def is_answered(self) -> bool:
        return len(self.answered) == self.questions

    @property
    def unasked(self) -> int:
        """The number of questions that were cancelled or left over by a rule or a budget."""
        return self.questions - len(self.asked)

    @property
    def was_cut(self) -> bool:
        """Return whether a rule, a budget or a person decides how many of its questions are asked."""
        return bool(self.unasked or self.reach.until)

    @property
    def is_over(self) -> bool:
        """Return whether every question that was asked has ended, by an answer or otherwise; one at least has."""
        return 0 < sum(self.reach.ended.values()) == len(self.asked)

    @property
    def asked_cost(self) -> Cost:
        """What the questions asked for that the scores are means of."""
        return replace(self.cost, asked=sum((each.work for each in self.costs.values()), Work()))

    @property
    def retrieval_count(self) -> int | None:
        """The number of paragraphs a search (k); None where nothing is retrieved, or the system has no such setting."""
        path = short_path("retrieval_count", self.settings)
        if path is None or self.corpus is None:
            return None
        value: Any = self.settings
        for key in path:
            value = value[key]
        return int(value)


def read_run(cell: ComparedCell, run: RecordedRun) -> ComparedRun:
    """The results of a recorded run."""
    questions = tuple(run.questions)
    asked = {each.key: each.scores for each in questions if each.asked}
    reach = Reach(ended={each.key: each.ended for each in questions}, until=run.until)
    means = mean_scores([*asked.values()], interval_of(is_fixed=not (run.until or len(asked) < len(questions))))
    return ComparedRun(
        cell=cell,
        system=run.system,
        settings=msgspec.to_builtins(run.settings),
        dataset=run.dataset,
        corpus=run.corpus,
        reach=reach,
        answered={each.key: each.scores for each in questions if each.answer is not None},
        scores=means.metrics,
        intervals=means.intervals,
        cost=run.cost,
        ends=run.ends,
        costs={each.key: each.cost for each in questions if each.asked},
        asked=asked,
    )
