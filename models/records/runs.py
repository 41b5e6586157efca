"""Run plans: the part of a run's row that its steps depend on.

A run's configuration never changes, so a process reads it once. Which systems there are isn't known here: the caller
passes in `cotrail.systems.registry.find_system`, or another function like it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select

from cotrail.core.binding import NAMES, Binding, name_in, read_binding
from cotrail.core.budgets import NO_BUDGETS, Budgets
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.money import Prices
from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.errors import UnknownNameError
from cotrail.models.records.contents import read_demonstrations
from cotrail.models.schema.tables import Run

PRICES, BUDGETS = "prices", "budgets"
"""The keys of a run's provenance under which it pins the prices of its language models, and its budgets."""

READING = "reading"
"""The key of a run's provenance under which there is how its file of questions is read."""

STAND_INS = "instead"
"""The key of a run's provenance under which it says what it has in place of the paper's."""

Shots = dict[AnswerForm, Demonstrations]


class Spec(Protocol):
    """A system as a run needs it."""

    @property
    def settings(self) -> type:
        """The type that a run's settings are read into."""

    @property
    def open(self) -> Callable[[Question, Shots, Any], System]:
        """Starts the system on a question, with demonstrations and settings."""


FindSystem = Callable[[str, int], Spec]
"""Returns the system of that name and version; raises UnknownNameError, UnknownVersionError."""


class RunPlan(Struct, frozen=True, kw_only=True):
    """A run as its steps need it.

    shared_in: the experiment whose runs adopt each other's steps; None where the run computes all of its own.
    served: whether its language model answers from a server or a script; batched: whether it is asked in batches.
    asked: whether it is a single question that somebody waits for.
    prices: of its hosted language models; budgets: of its questions and of itself.
    """

    id: str
    system: str
    system_version: int
    settings: dict[str, Any]
    shots: Shots
    binding: Binding
    model_name: str
    shared_in: str | None
    served: bool = False
    batched: bool = False
    asked: bool = False
    embedder_name: str = ""
    entailer_name: str = ""
    prices: Prices = {}
    budgets: Budgets = NO_BUDGETS

    def engine_name(self, role: str) -> str:
        """The name of the engine that the run has for a role; empty where it has none."""
        name: str = getattr(self, NAMES[role]) if role in NAMES else name_in(self.binding.pins.get(role, ""))
        return name

    def open(self, question: Question, find_system: FindSystem) -> Callable[[], System]:
        """Return what starts the run's system on a question; raises UnknownVersionError where this process lacks it."""
        spec = find_system(self.system, self.system_version)
        settings: Any = msgspec.convert(self.settings, spec.settings)
        return lambda: spec.open(question, self.shots, settings)


def read_prices(provenance: Mapping[str, Any]) -> Prices:
    """Return the prices that a run pins."""
    prices: Prices = msgspec.convert(provenance.get(PRICES, {}), Prices)
    return prices


class Runs:
    """Cache of run plans and demonstrations. Safe to share between threads: at worst, two read the same row."""

    def __init__(self, find_system: FindSystem) -> None:
        self.find_system = find_system
        self._plans: dict[str, RunPlan] = {}
        self._demonstrations: dict[str, Demonstrations] = {}

    def plan(self, connection: Connection, run_id: str) -> RunPlan:
        """Return the run of that id; raises UnknownNameError."""
        if run_id not in self._plans:
            self._plans[run_id] = self._load(connection, run_id)
        return self._plans[run_id]

    def demonstrations(self, connection: Connection, digest: str) -> Demonstrations:
        """Return the demonstrations of that digest; raises UnreadableError where they were removed by hand."""
        if digest not in self._demonstrations:
            self._demonstrations[digest] = read_demonstrations(connection, digest)
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
            binding=read_binding(row),
            # Of a run whose results must be its own, such as a repeat, steps have no twins: see
            # `cotrail.models.execution.adoption`.
            shared_in=row["experiment_id"] if row["reuse"] else None,
            served=row["served"],
            batched=row["batched"],
            asked=row["asked"],
            prices=read_prices(row["provenance"]),
            budgets=msgspec.convert(row["provenance"].get(BUDGETS, {}), Budgets, strict=False),
            **{column: row[column] for column in NAMES.values()},
        )
