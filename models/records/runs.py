"""What a worker has to know of a run to advance it: read once, since a run's configuration never changes."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select

from cotrail.core.binding import Binding
from cotrail.core.prompts import AnswerForm, Demonstrations
from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.errors import UnknownNameError, UnreadableError
from cotrail.systems.registry import SYSTEMS
from cotrail.systems.spec import SystemSpec, find_spec
from models.schema.tables import DemonstrationSet, Run


class RunPlan(Struct, frozen=True, kw_only=True):
    """A run as its steps need it.

    shared_in: the experiment whose runs adopt each other's steps; None where the run computes all of its own.
    """

    id: str
    system: str
    system_version: int
    settings: dict[str, Any]
    shots: dict[AnswerForm, Demonstrations]
    binding: Binding
    corpus: str | None
    model_name: str
    shared_in: str | None
    embedder_name: str = ""
    entailer_name: str = ""

    def open(self, question: Question, systems: tuple[SystemSpec, ...]) -> Callable[[], System]:
        """What starts the run's system on a question; raises UnknownVersionError where this process lacks it."""
        spec = find_spec(systems, self.system, self.system_version)
        settings: Any = msgspec.convert(self.settings, spec.settings)
        return lambda: spec.open(question, self.shots, settings)


class Runs:
    """The runs and the demonstrations that this process has met; safe to share between threads."""

    def __init__(self, systems: tuple[SystemSpec, ...] = SYSTEMS) -> None:
        self.systems = systems
        self._plans: dict[str, RunPlan] = {}
        self._demonstrations: dict[str, Demonstrations] = {}

    def plan(self, connection: Connection, run_id: str) -> RunPlan:
        """The run of that id; raises UnknownNameError."""
        if run_id not in self._plans:
            self._plans[run_id] = self._load(connection, run_id)
        return self._plans[run_id]

    def demonstrations(self, connection: Connection, digest: str) -> Demonstrations:
        """The demonstrations of that digest, which the store holds since a run was submitted with them.

        Raises UnreadableError where somebody removed them.
        """
        if digest not in self._demonstrations:
            body = connection.execute(
                select(DemonstrationSet.body).where(DemonstrationSet.digest == digest)
            ).scalar_one_or_none()
            if body is None:
                raise UnreadableError(
                    f"the demonstrations {digest:.64} aren't in the store; restore them from a backup"
                )
            self._demonstrations[digest] = msgspec.convert(body, Demonstrations)
        return self._demonstrations[digest]

    def _load(self, connection: Connection, run_id: str) -> RunPlan:
        row = connection.execute(select(Run.__table__).where(Run.id == run_id)).mappings().one_or_none()
        if row is None:
            raise UnknownNameError(f"there is no run {run_id!r}; `cotrail runs` lists them")
        return RunPlan(
            id=run_id,
            system=row["system"],
            system_version=row["system_version"],
            settings=row["settings"],
            shots={
                AnswerForm(form): self.demonstrations(connection, digest)
                for form, digest in row["demonstrations"].items()
            },
            binding=Binding(
                model=row["model"],
                profile=row["profile"],
                temperature=row["temperature"],
                seed=row["seed"],
                corpus=row["corpus_revision"],
                embedder=row["embedder"],
                entailer=row["entailer"],
                knowledge=row["knowledge"],
            ),
            corpus=row["corpus"],
            model_name=row["model_name"],
            shared_in=row["experiment_id"] if row["reuse"] else None,
            embedder_name=row["embedder_name"],
            entailer_name=row["entailer_name"],
        )
