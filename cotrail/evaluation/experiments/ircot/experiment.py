"""Experiment file of IRCoT's protocol (IRCoT, section 4)."""

from collections import Counter
from typing import Annotated

from msgspec import Meta, Struct

from cotrail.common.numbers import Positive
from cotrail.data.datasets.ircot_processed import PROCESSED_FORMAT
from cotrail.data.demonstrations.building import Style
from cotrail.evaluation.experiments.experiment_file import Experiment, Temperature
from cotrail.evaluation.experiments.ircot.cells import Goal
from cotrail.systems.parts.reader_settings import Reader

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
                self._has_styles
                and isinstance(demonstrations, DemonstrationFiles)
                and "{style}" not in demonstrations.cot
            ):
                raise ValueError(f"models of several styles need `{{style}}` in the demonstrations' paths of {dataset}")

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models, in the order of the file."""
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

    @property
    def _has_styles(self) -> bool:
        return len(set(map(self.style_of, self.model_names))) > 1

    def _use(self, model: str) -> ModelUse:
        return next(use for use in self._uses if use.name == model)

    @property
    def _uses(self) -> tuple[ModelUse, ...]:
        return tuple(ModelUse(name=model) if isinstance(model, str) else model for model in self.models)
