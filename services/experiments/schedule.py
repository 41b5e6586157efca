"""What the protocols of papers have in common for whoever carries an experiment out."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from models.queries.experiments import ExperimentRecord
from services.requests import Prepared


class Named(Protocol):
    """A run of an experiment, whatever its protocol varies."""

    @property
    def name(self) -> str:
        """What names the run in its experiment."""


C = TypeVar("C", bound=Named)


class Schedule(Protocol[C]):
    """An experiment by its paper's protocol: which runs there are, given what is recorded, and what each of them is.

    Raises InputError and its kinds for whatever can't be used.
    """

    @property
    def name(self) -> str:
        """The experiment's."""

    @property
    def planned(self) -> int:
        """How many runs there are in all."""

    def plan(self) -> dict[str, Any]:
        """Everything that decides the experiment's results; an experiment that goes on must have the same.

        Under `experiment` it has what the file describes, under `models` the models' identities by name.
        """

    def check(self) -> Sequence[str]:
        """Prepares whatever may be run, so that what can't be used shows first; returns what a person should know."""

    def due(self, connection: Connection, record: ExperimentRecord) -> Sequence[C]:
        """The runs that can be submitted now and aren't yet."""

    def prepare(self, cell: C) -> Prepared:
        """A run, as it is submitted."""
