"""An experiment as its file describes it (IRCoT, section 4)."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from cotrail.experiments.cells import Goal, SystemName
from cotrail.generation.generator import Profile
from cotrail.prompting.building import Style
from cotrail.systems.rules import Rules
from cotrail.systems.settings import Positive, Reader

Counts = Annotated[tuple[Positive, ...], Meta(min_length=1)]
Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class DemonstrationFiles(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The paths of a dataset's demonstrations; `{M}` in a path stands for the number of distractors.

    cot, direct: with paragraphs; without `direct`, the answers that the chains state are taken.
    no_context_cot, no_context_direct: for `no-retrieval`; without these, those above without their paragraphs.
    titles: for questions that pin a passage (IIRC).
    """

    cot: str
    direct: str | None = None
    no_context_cot: str | None = None
    no_context_direct: str | None = None
    titles: str | None = None


class DatasetFiles(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a dataset is.

    corpus: an indexed corpus by its name.
    demonstrations: paths, or a folder whose files are named as the authors named theirs.
    questions: one file that development and test questions are both drawn from; or else a file of each.
    format: how the question files are written; the name of the dataset where it isn't given.
    """

    corpus: str
    demonstrations: DemonstrationFiles | str
    questions: str | None = None
    development: str | None = None
    test: str | None = None
    format: str | None = None


class Grid(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What K and M are chosen from, with the paper's values (section 4.1)."""

    one_step_counts: Counts = (5, 7, 9, 11, 13, 15)
    ircot_counts: Counts = (2, 4, 6, 8)
    distractors: Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(min_length=1)] = (1, 2, 3)


class Experiment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that decides which runs there are and what comes out of them.

    development_questions, test_questions: how many are drawn, by the seed.
    demonstration_sets, demonstrations_per_set: how many sets are drawn by the seed, and of how many demonstrations.
    out_of_distribution: each dataset's demonstrations are also shown with every other dataset's questions.
    style: which of a folder's files are taken.
    settings: further settings of systems, by the system's name.
    """

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
    datasets: Annotated[dict[str, DatasetFiles], Meta(min_length=1)]
    models: tuple[str, ...] = ()
    systems: tuple[SystemName, ...] = ("no-retrieval", "one-step", "ircot")
    goals: tuple[Goal, ...] = ("retrieval", "qa")
    readers: tuple[Reader, ...] = ("direct",)
    rules: Rules = "paper"
    style: Style = "codex"
    grid: Grid = Grid()
    development_questions: Positive = 100
    test_questions: Positive = 500
    demonstration_sets: Positive = 3
    demonstrations_per_set: Positive = 15
    out_of_distribution: bool = False
    seed: Whole = 0
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    profile: Profile = "deterministic"
    settings: dict[SystemName, dict[str, Any]] = {}
