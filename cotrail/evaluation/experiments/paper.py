"""A paper's experiments as one record: its file and inputs, the grid of its runs, its tables and figures."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Protocol, TypeVar

from msgspec import Meta, Struct, to_builtins

from cotrail.common.structs import merged, unusual
from cotrail.core.budgets import NO_BUDGET, Budget
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.ports.language_model import Profile, Serving
from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Question
from cotrail.core.repeats import Repeat
from cotrail.data.corpora.paragraph_ids import paragraphs_in, titled_in
from cotrail.data.datasets.loading import form_of, load_questions
from cotrail.data.datasets.sampling import sample_questions
from cotrail.data.demonstrations.sets import RELEASED, in_form, listed_set, read_demonstrations
from cotrail.errors import DemonstrationError, InputError
from cotrail.evaluation.experiments.costs import RecordedRun
from cotrail.evaluation.experiments.report_tables import NO_RESULTS, ExperimentReport
from cotrail.evaluation.metrics.corpus_coverage import located
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.systems.parts.rules import Rules
from cotrail.systems.spec import Needs

RunKeys = Mapping[str, Any]
"""A run's request: the keys of its run file, with paths relative to the experiment's file."""


def named_corpora(keys: RunKeys) -> tuple[str, ...]:
    """The names of the corpora that a request names, each once."""
    return tuple(dict.fromkeys(filter(None, (keys.get("corpus"), *keys.get("corpora", ())))))


class Inputs:
    """What the runs of an experiment ask and show, each file read once; a paper with other rules overrides them.

    folder: that of the experiment's file; keys: a run's request; open_corpus: opens a corpus by its name.
    Raises InputError and its kinds for what can't be used.
    """

    locates_gold: ClassVar[bool] = True
    """Whether gold paragraphs are replaced by those of the corpus that they are found in."""

    def __init__(
        self, experiment: Any, folder: Path, keys: Callable[[Any], RunKeys], open_corpus: Callable[[str], Corpus]
    ) -> None:
        self.experiment = experiment
        self.folder = folder
        self.keys = keys
        self.corpus = cache(open_corpus)
        self._drawn = cache(self._draw)
        self._read = cache(read_demonstrations)

    def files(self) -> Iterator[str]:
        """The files that decide the results, whether or not a run needs them."""
        for files in self.experiment.datasets.values():
            yield from filter(None, (files.questions, getattr(files, "demonstrations", None)))

    def corpora(self) -> Iterable[str]:
        """The corpora that decide the results, searched or not: gold paragraphs are located in them."""
        corpora = (files.corpus for files in self.experiment.datasets.values())
        return [name for name in corpora if name and self.locates_gold]

    def notes(self) -> Iterable[str]:
        """What a user should know before the runs begin."""
        return ()

    def questions(self, cell: Any) -> tuple[Question, ...]:
        """The questions of a run: as many as the experiment asks for, drawn by its seed."""
        keys, files = self.keys(cell), self.experiment.datasets[cell.dataset]
        number = getattr(files, "test_questions", getattr(self.experiment, "test_questions", None))
        limit, official = keys.get("limit"), keys.get("official")
        return self._drawn(keys["dataset"], keys["questions"], named_corpora(keys), official, limit, number)

    def instructed(self, cell: Any) -> bool:
        """Whether the demonstrations of a run have an instruction before the question."""
        return bool(self._demonstrations(cell, "demonstrations").instruction)

    def shown(self, cell: Any, form: AnswerForm) -> Demonstrations:
        """The demonstrations of a run in this form; empty if it has none."""
        if form is AnswerForm.TITLES:
            return self._demonstrations(cell, "title_demonstrations")
        return in_form(self._demonstrations(cell, "demonstrations"), form)

    def _demonstrations(self, cell: Any, field: str) -> Demonstrations:
        keys = self.keys(cell)
        if not keys.get(field):
            return Demonstrations()
        demonstrations, sets = self._read(self.folder / keys[field]), keys.get("sets")
        if sets is None:
            return demonstrations
        where = sets if sets == RELEASED else str(self.folder / sets)
        try:
            return listed_set(demonstrations, where, keys.get("set_number") or 1)
        except DemonstrationError as error:
            raise DemonstrationError(f"{keys[field]}: {error}") from error

    def _draw(
        self,
        format_: str,
        name: str,
        corpora: tuple[str, ...],
        official: str | None,
        limit: int | None,
        number: int | None,
    ) -> tuple[Question, ...]:
        questions = self._loaded(format_, name, corpora, official)[:limit]
        if unanswered := [question.id for question in questions if not question.answers]:
            raise InputError(
                f"{self.folder / name}: the question {unanswered[0]!r} has no answer to compare with; add it"
            )
        sample = questions if number is None else sample_questions(questions, 0, number, self.experiment.seed)[1]
        return self._located(sample, format_, name, corpora) if self.locates_gold else sample

    def _loaded(self, format_: str, name: str, corpora: Sequence[str], official: str | None) -> tuple[Question, ...]:
        """All questions of a file; official: the dataset's own file, to complete processed ones."""
        opened = list(map(self.corpus, corpora))
        lookup, own = partial(paragraphs_in, opened) if opened else None, self.folder / official if official else None
        return load_questions(format_, self.folder / name, lookup, own)

    def _located(
        self, questions: Sequence[Question], format_: str, name: str, corpora: Sequence[str]
    ) -> tuple[Question, ...]:
        """Questions of that file with their gold paragraphs as the corpora have them, if there are any."""
        if not corpora:
            return tuple(questions)
        snippets = form_of(format_, self.folder / name).snippets
        return located(questions, partial(titled_in, list(map(self.corpus, corpora))), snippets=snippets)


class GoldAsPublished(Inputs):
    """The same with gold paragraphs as the dataset publishes them."""

    locates_gold = False


Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]
ExperimentName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        max_length=200,
        description="a name of letters, digits, dots, dashes and underscores (200 at most)",
        examples=["main-results"],
    ),
]


class DatasetFiles(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dataset of an experiment. questions: its file; format: of that, the dataset's name by default."""

    questions: str
    format: str | None = None


class Experiment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="protocol"):
    """Everything that determines the runs and their results; a paper adds what it varies, and its `datasets`.

    models: those of `models.toml`; the default model if there are none.
    settings: further settings of systems, by the system's name.
    question_budget, run_budget: the most that a question of a run may take, and each run. serving: of every run.
    """

    name: ExperimentName
    models: tuple[Any, ...] = ()
    rules: Rules = "paper"
    seed: Whole = 0
    profile: Profile = "deterministic"
    settings: dict[str, dict[str, Any]] = {}
    question_budget: Budget = NO_BUDGET
    run_budget: Budget = NO_BUDGET
    serving: Serving = "live"

    @property
    def protocol(self) -> str:
        """The paper that it follows, as files name it."""
        return str(self.__struct_config__.tag)

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models, in the order of the file."""
        return self.models

    def request(self, system: str, *settings: Mapping[str, Any], **keys: Any) -> dict[str, Any]:
        """A run's request: these keys, and those that the file gives to every run.

        settings: of the run, over the file's; later ones win.
        """
        shared: dict[str, Any] = {"rules": self.rules, "seed": self.seed, "profile": self.profile}
        later = unusual(self, "question_budget", "run_budget", "serving")
        shared |= {name: to_builtins(each) for name, each in later.items()}
        return {"system": system, **shared, "settings": reduce(merged, settings, self.settings.get(system, {})), **keys}


class ExperimentCell(Protocol):
    """A run of an experiment, by what it varies."""

    @property
    def name(self) -> str:
        """Name of the run in its experiment."""


class GridCell(Struct, frozen=True, kw_only=True):
    """A run of a grid: a system on a dataset with a model, as it is or varied."""

    dataset: str
    model: str
    method: str
    variation: str = ""

    @property
    def name(self) -> str:
        """Name of the run in its experiment, e.g. `strategyqa/gpt-3/rethinking/selection`."""
        return "/".join(filter(None, (self.dataset, self.model, self.method, self.variation)))


C = TypeVar("C", bound=ExperimentCell)


class Stage(Struct, Generic[C], frozen=True, kw_only=True):
    """Runs that can begin at once, and those that depend on their results.

    choose: the best of the cells by the scores of their questions; then: the runs that follow it. None if none follow.
    """

    cells: tuple[C, ...]
    choose: Callable[[Mapping[C, Sequence[QuestionScores]]], C] | None = None
    then: Callable[[C], tuple[C, ...]] = lambda _: ()

    @property
    def planned(self) -> tuple[C, ...]:
        """All of its runs, as if the first were the best."""
        return (*self.cells, *self.then(self.cells[0])) if self.choose else self.cells

    @property
    def possible(self) -> tuple[C, ...]:
        """Its runs whichever is the best."""
        return (*self.cells, *(cell for best in self.cells for cell in self.then(best))) if self.choose else self.cells


def at_once(cells: Iterable[C]) -> tuple[Stage[C], ...]:
    """The only stage of an experiment in which no run depends on another's result."""
    return (Stage(cells=tuple(cells)),)


E = TypeVar("E", bound=Experiment)
R = TypeVar("R")


class Paper(Struct, Generic[E, C, R], frozen=True, kw_only=True):
    """What the experiments of a paper are.

    file: the type of its experiment files, whose tag is their `protocol`.
    stages: the runs of an experiment; each stage is independent of the others.
    request: a run's request, see `RunKeys`; a run leaves out the engines that its settings have no use for.
    read: what the tables need of a recorded run; report: the tables and figures, a pure function of these.
    select: the cells of a stage that are run, given what the run of each needs; all if there is no such function.
        Raises InputError for what no run has a use for.
    repeat: which of several runs that differ only in their seeds a run is.
    inputs: questions and demonstrations. pinned: what a plan pins in addition to files, corpora and language models.
    """

    file: type[E]
    stages: Callable[[E], Sequence[Stage[C]]]
    request: Callable[[E, C], RunKeys]
    read: Callable[[C, RecordedRun], R]
    report: Callable[[Sequence[R]], ExperimentReport]
    select: Callable[[E, Mapping[C, Needs]], Sequence[C]] | None = None
    repeat: Callable[[E, C], Repeat | None] = lambda *_: None
    inputs: type[Inputs] = Inputs
    pinned: tuple[str, ...] = ("embedders", "entailers", "pins")

    def reported(self, results: Sequence[R]) -> ExperimentReport:
        """The tables and figures of these results; a summary alone where there are none yet."""
        return self.report(results) if results else ExperimentReport(summary=NO_RESULTS, tables=())
