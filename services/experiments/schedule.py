"""Protocol of a paper's experiment: which runs it has, given what is recorded, and what each of them is."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from cotrail.evaluation.metrics.question_scores import QuestionScores
from cotrail.services.prepared_run import PreparedRun


class Named(Protocol):
    """A run of an experiment, whatever its protocol varies."""

    @property
    def name(self) -> str:
        """The run's name in its experiment."""


C = TypeVar("C", bound=Named)


class RecordedRuns(Protocol):
    """The runs of an experiment that are recorded."""

    @property
    def ids(self) -> Mapping[str, str]:
        """The runs' ids by their names in the experiment."""

    def is_complete(self, run: str) -> bool:
        """Return whether every question of the run has ended with an answer or a failure, so that it can be scored."""

    def scores(self, run: str) -> tuple[QuestionScores, ...]:
        """The scores of the run's questions."""


class Schedule(Protocol[C]):
    """An experiment by its paper's protocol.

    Raises InputError and its kinds for whatever can't be used.
    """

    @property
    def name(self) -> str:
        """The experiment's name."""

    @property
    def planned(self) -> int:
        """The number of runs in all."""

    def plan(self) -> dict[str, Any]:
        """Everything that decides the experiment's results; an experiment that is continued must have the same.

        Under `experiment` it has what the file describes, under `models` the models' identities by name.
        """

    def check(self) -> Sequence[str]:
        """Prepares whatever may be run, so that unusable inputs show first; returns notes for the user."""

    def due(self, recorded: RecordedRuns) -> Sequence[C]:
        """The runs that can be submitted now and aren't yet."""

    def prepare(self, cell: C) -> PreparedRun:
        """A run, ready to be submitted."""
