"""IRCoT's protocol: the runs of an experiment, and the choice of K and M (IRCoT, section 4.1).

K and M are searched on the development questions with the first demonstration set; with the best, every demonstration
set is tried on the test questions.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.data.datasets.ircot_processed import PROCESSED_FORMAT
from cotrail.data.demonstrations.building import Style
from cotrail.errors import InputError
from cotrail.evaluation.experiments.ircot.cells import Cell, Goal, Line
from cotrail.evaluation.experiments.paper import Experiment, Stage
from cotrail.evaluation.metrics.metric import QuestionScores
from cotrail.systems.parts.reading import Reader
from cotrail.systems.parts.rules import Rules
from cotrail.systems.spec import Needs, SystemSpec, find_spec

Counts = Annotated[tuple[Positive, ...], Meta(min_length=1)]


class DemonstrationFiles(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paths of a dataset's demonstrations, with placeholders `{M}` (number of distractors) and `{style}`.

    cot, direct: with paragraphs; if `direct` is missing, the answers that the chains state are taken.
    no_context_cot, no_context_direct: for `no-retrieval`; without these, those above without their paragraphs.
    titles: for questions that pin a passage (IIRC).
    """

    cot: str
    direct: str | None = None
    no_context_cot: str | None = None
    no_context_direct: str | None = None
    titles: str | None = None


class IRCoTFiles(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Location of a dataset's files.

    corpus: name of an indexed corpus.
    demonstrations: paths, or a folder whose files are named as the authors named theirs.
    sets: the demonstration sets as a JSON file of lists of ids, or `released` for the authors'; drawn if not given.
    questions: one file from which development and test questions are drawn; or else a file of each.
    official: the dataset's own file, to complete processed questions.
    format: the dataset's name as `--dataset` takes it, if the table uses another; `ircot` is accepted for files that
        the authors of IRCoT processed, though their content tells that anyway.
    """

    corpus: str
    demonstrations: DemonstrationFiles | str
    sets: str | None = None
    questions: str | None = None
    development: str | None = None
    test: str | None = None
    official: str | None = None
    format: str | None = None


class Grid(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Search grid of K and M; the defaults are the paper's (section 4.1)."""

    one_step_counts: Counts = (5, 7, 9, 11, 13, 15)
    ircot_counts: Counts = (2, 4, 6, 8)
    distractors: Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(min_length=1)] = (1, 2, 3)


class ModelUse(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A model with prompts and readers of its own (IRCoT, section 4.2 and appendix G); None: those of the experiment.

    name: that of `models.toml`. style: see `IRCoTExperiment`. readers: GPT-3's chain of thought, Flan-T5's direct one.
    """

    name: str
    style: Style | None = None
    readers: Annotated[tuple[Reader, ...], Meta(min_length=1)] | None = None


class IRCoTExperiment(Experiment, frozen=True, kw_only=True, tag="ircot"):
    """An experiment by IRCoT's protocol.

    models: names, or `ModelUse` for a model with its own style or readers.
    development_questions, test_questions: numbers to draw, by the seed.
    demonstration_sets, demonstrations_per_set: number and size of the sets to draw, by the seed; of a dataset with
        named sets, the first `demonstration_sets` are taken, of any size.
    out_of_distribution: whether each dataset's demonstrations are also shown with every other dataset's questions.
    style: selects among a folder's files, and replaces `{style}` in paths.
    """

    datasets: Annotated[dict[str, IRCoTFiles], Meta(min_length=1)]
    models: tuple[str | ModelUse, ...] = ()
    systems: tuple[str, ...] = ("no-retrieval", "one-step", "ircot")
    goals: tuple[Goal, ...] = ("retrieval", "qa")
    readers: tuple[Reader, ...] = ("direct",)
    style: Style = "codex"
    grid: Grid = Grid()
    development_questions: Positive = 100
    test_questions: Positive = 500
    demonstration_sets: Positive = 3
    demonstrations_per_set: Positive = 15
    out_of_distribution: bool = False
    temperature: Temperature = 0.0

    def __post_init__(self) -> None:
        if twice := [name for name, times in Counter(self.model_names).items() if times > 1]:
            raise ValueError(f"the model {twice[0]} is named twice; list it in models.toml under two names")
        for dataset, files in self.datasets.items():
            demonstrations = files.demonstrations
            if (
                len(set(map(self.style_of, self.model_names))) > 1
                and isinstance(demonstrations, DemonstrationFiles)
                and "{style}" not in demonstrations.cot
            ):
                raise ValueError(f"models of several styles need `{{style}}` in the demonstrations' paths of {dataset}")

    @property
    def model_names(self) -> tuple[str, ...]:
        return tuple(model.name for model in self._uses)

    def style_of(self, model: str) -> Style:
        """The prompt style for a model."""
        return self._use(model).style or self.style

    def readers_of(self, model: str) -> tuple[Reader, ...]:
        """The readers for a model."""
        return self._use(model).readers or self.readers

    def published_as(self, name: str) -> str:
        """The dataset's name as `--dataset` takes it; it determines the scoring."""
        format_ = self.datasets[name].format
        return name if format_ in (None, PROCESSED_FORMAT) else format_

    def names_pages(self, name: str) -> bool:
        """Return whether the dataset's demonstrations make a model name pages before a search (IIRC)."""
        files = self.datasets[name]
        if isinstance(files.demonstrations, DemonstrationFiles):
            return files.demonstrations.titles is not None
        return self.published_as(name) == "iirc"

    def _use(self, model: str) -> ModelUse:
        return next(use for use in self._uses if use.name == model)

    @property
    def _uses(self) -> tuple[ModelUse, ...]:
        return tuple(ModelUse(name=model) if isinstance(model, str) else model for model in self.models)


class IRCoTProtocol:
    """The runs of an experiment, given its file and the specs of its systems."""

    def __init__(self, experiment: IRCoTExperiment, systems: Iterable[SystemSpec]) -> None:
        names = tuple(systems)
        self._experiment = experiment
        self._systems = {name: find_spec(names, name) for name in (*experiment.systems, *experiment.settings)}
        for name, spec in self._systems.items():
            if "reading" not in spec.settings.__struct_fields__:
                raise InputError(f"the system {name} has no reader, and an experiment compares systems that have one")

    def lines(self) -> tuple[Line, ...]:
        """The results that the experiment will have, in the order of its file."""
        experiment = self._experiment
        return tuple(
            Line(goal=goal, dataset=dataset, demonstrations=demonstrations, model=model, system=system, reader=reader)
            for model in experiment.model_names
            for dataset, demonstrations in product(experiment.datasets, repeat=2)
            if demonstrations == dataset or experiment.out_of_distribution
            for goal in experiment.goals
            for system in experiment.systems
            for reader in self._readers(experiment.readers_of(model), goal, system)
        )

    def cells_to_search(self, line: Line) -> tuple[Cell, ...]:
        """The runs that K and M of this line are chosen by; none if there is nothing to choose."""
        cells = tuple(self._grid(line))
        return cells if len(cells) > 1 else ()

    def cells_to_test(self, line: Line, best: Cell | None) -> tuple[Cell, ...]:
        """The runs on the test questions: one a demonstration set, or a single one if no prompt has demonstrations.

        best: of `cells_to_search`; None if there are none.
        """
        sets = self._experiment.demonstration_sets if self._shows_demonstrations(line) else 1
        first = best or next(self._grid(line))
        return tuple(
            Cell(
                line=line,
                stage="test",
                demonstration_set=number,
                retrieval_count=first.retrieval_count,
                distractors=first.distractors,
            )
            for number in range(1, sets + 1)
        )

    def stages(self) -> tuple[Stage[Cell], ...]:
        """The runs of each line: those that K and M are chosen by, and with these the ones on the test questions."""
        return tuple(map(self._stage, self.lines()))

    def _stage(self, line: Line) -> Stage[Cell]:
        searched = self.cells_to_search(line)
        if not searched:
            return Stage(cells=self.cells_to_test(line, None))
        return Stage(
            cells=searched, choose=partial(choose, rules=self._experiment.rules), then=partial(self.cells_to_test, line)
        )

    def _readers(self, readers: tuple[Reader, ...], goal: Goal, system: str) -> tuple[Reader, ...]:
        """The readers that a system is tried with: retrieval needs none, and few systems answer without one."""
        if goal == "retrieval":
            return ("none",) if self._needs(system, "none").corpus else ()
        return tuple(reader for reader in readers if reader != "none" or self._systems[system].states_answer)

    def _grid(self, line: Line) -> Iterator[Cell]:
        for count, distractors in product(self._counts(line), self._distractors(line)):
            yield Cell(line=line, stage="search", demonstration_set=1, retrieval_count=count, distractors=distractors)

    def _counts(self, line: Line) -> tuple[int | None, ...]:
        """The values that K is chosen from."""
        match self._systems[line.system].counts:
            case "interleaved":
                return self._experiment.grid.ircot_counts
            case "one-step":
                return self._experiment.grid.one_step_counts
            case None:
                return (None,)

    def _distractors(self, line: Line) -> tuple[int | None, ...]:
        """The values that M is chosen from; distractors are shown where demonstrations have paragraphs."""
        needs = self._needs(line.system, line.reader)
        return self._experiment.grid.distractors if needs.corpus and needs.forms else (None,)

    def _shows_demonstrations(self, line: Line) -> bool:
        """Return whether any prompt of the line has demonstrations, be it that which asks for the titles of pages."""
        names_pages = self._experiment.names_pages
        return bool(self._needs(line.system, line.reader).forms) or (
            names_pages(line.dataset) and names_pages(line.demonstrations)
        )

    def _needs(self, system: str, reader: Reader) -> Needs:
        spec = self._systems[system]
        return spec.needs(msgspec.convert({"reading": {"reader": reader}}, spec.settings))


def choose(searched: Mapping[Cell, Sequence[QuestionScores]], rules: Rules) -> Cell:
    """The best of a line's search runs; of equally good ones the first in the grid's order, K before M."""
    return max(searched, key=lambda cell: search_score(cell.line.goal, searched[cell], rules))


def search_score(goal: Goal, scores: Sequence[QuestionScores], rules: Rules) -> float:
    """The score of a search run: the mean recall of gold paragraphs, or F1 of answers, from 0 to 1.

    The released code takes the recall of gold titles, and an F1 by DROP's rules for every dataset, both rounded to a
    thousandth. A question without the score counts 0.
    """
    names = {"paper": ("paragraph_recall", "answer_f1"), "released": ("title_recall", "tuning_f1")}[rules]
    name = names[0] if goal == "retrieval" else names[1]
    mean = fmean(each[name] or 0.0 for each in scores) if scores else 0.0
    return mean if rules == "paper" else round(mean, 3)
