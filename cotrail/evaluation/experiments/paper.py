"""A paper's experiments as one record: its file, the grid of its runs, and its tables and figures of their results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from cotrail.core.repeats import Repeat
from cotrail.evaluation.experiments.experiment_file import Experiment
from cotrail.evaluation.experiments.experiment_report import ExperimentReport
from cotrail.evaluation.experiments.inputs import Inputs, RunKeys
from cotrail.evaluation.experiments.recorded_runs import RecordedRun
from cotrail.evaluation.experiments.stages import C, Stage
from cotrail.systems.spec import Needs

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
    inputs: questions and demonstrations. pinned: what a plan pins besides files, corpora and language models.
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
