"""Run plans: the part of a run's row that its steps depend on.

A run's configuration never changes, so a process reads it once. Which systems there are isn't known here: the caller
passes in `cotrail.systems.registry.find_system`, or another function like it.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from cotrail.core.binding import FILTER, NAMES, SYSTEM_SOURCE, Binding, filter_of, name_in, read_binding
from cotrail.core.budgets import NO_BUDGETS, Budgets
from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.core.money import Prices
from cotrail.core.questions import Question
from cotrail.core.system import System
from cotrail.errors import InputError, ModelChangedError, UnknownNameError
from cotrail.models.records.contents import read_demonstrations
from cotrail.models.records.projects import in_project
from cotrail.models.schema.tables import Run, run_labels, runs

PRICES, BUDGETS = "prices", "budgets"
"""The keys of a run's provenance under which it pins the prices of its language models, and its budgets."""

READING = "reading"
"""The key of a run's provenance under which there is how its file of questions is read."""

IMPORTED = "imported"
"""The key of a run's provenance under which one that was imported names its file; nothing shows what happened there."""

STAND_INS = "instead"
"""The key of a run's provenance under which it says what it has in place of the paper's."""

Shots = dict[AnswerForm, Demonstrations]


class Spec(Protocol):
    """A system as a run needs it."""

    @property
    def settings(self) -> type:
        """The type that a run's settings are read into."""

    @property
    def source(self) -> str:
        """The digest of its text where it is an extension; empty for cotrail's own."""

    @property
    def open(self) -> Callable[[Question, Shots, Any], System]:
        """Starts the system on a question, with demonstrations and settings."""


FindSystem = Callable[[str, int], Spec]
"""Returns the system of that name and version; raises UnknownNameError, UnknownVersionError."""

Bring = Callable[[str, Mapping[str, str]], None]
"""Keeps the text of the system of that name, as its run recorded it, for `FindSystem` to find."""


class RunBasics(Struct, frozen=True, kw_only=True):
    """What a run is, whether it is submitted, carried out or shown.

    settings: the system's, every default spelled out; batched: whether it is asked in batches.
    asked: whether it is a single question that somebody waits for, whose steps go ahead of all others.
    """

    id: str
    system: str
    system_version: int
    settings: dict[str, Any]
    model_name: str
    embedder_name: str
    entailer_name: str
    batched: bool
    asked: bool = False


class SubmittedRun(RunBasics, frozen=True, kw_only=True):
    """What of a run is recorded as it is submitted, and isn't needed by its steps.

    cell: its name within its experiment. provenance: versions and paths, for a reader.
    reuse: whether this run and the experiment's others that reuse adopt each other's steps.
    priority: runs with a higher one have their questions admitted first.
    origin, forked_at: the run that it is forked from, and the step or kind that was named.
    """

    dataset: str
    provenance: dict[str, Any]
    cell: str | None
    reuse: bool
    priority: int
    origin: str | None
    forked_at: str | None


class RunPlan(RunBasics, frozen=True, kw_only=True):
    """A run as its steps need it.

    shared_in: the experiment whose runs adopt each other's steps; None where the run computes all of its own.
    served: whether its language model answers from a server or a script and doesn't compute in the worker.
    prices: of its hosted language models; budgets: of its questions and of itself.
    """

    shots: Shots
    binding: Binding
    shared_in: str | None
    served: bool = False
    prices: Prices = {}
    budgets: Budgets = NO_BUDGETS

    @property
    def is_others(self) -> bool:
        """Whether its system is not cotrail's own."""
        return "@" in self.system or SYSTEM_SOURCE in self.binding.pins

    def engine_name(self, role: str) -> str:
        """The name of the engine that the run has for a role; empty where it has none."""
        name: str = getattr(self, NAMES[role]) if role in NAMES else name_in(self.binding.pins.get(role, ""))
        return name

    def bound(self, question: str, kinds: Mapping[str, str]) -> Binding:
        """What decides the results of one question; raises InputError where the filter needs a kind that it lacks."""
        filter_ = filter_of(self.binding.pins.get(FILTER, ""), kinds, question)
        return replace(self.binding, pins=self.binding.pins | {FILTER: filter_}) if filter_ else self.binding

    def open(self, question: Question, find_system: FindSystem) -> Callable[[], System]:
        """Return what starts the run's system on a question; raises UnknownVersionError where this process lacks it."""
        spec = find_system(self.system, self.system_version)
        if spec.source != (pinned := self.binding.pins.get(SYSTEM_SOURCE, "")):
            raise ModelChangedError(
                f"the text of the system {self.system} changed since the run was submitted: {pinned or 'cotrail'} "
                f"then, {spec.source or 'cotrail'} now; put the former back, then `cotrail resume RUN`"
            )
        settings: Any = msgspec.convert(self.settings, spec.settings)
        return lambda: spec.open(question, self.shots, settings)


def read_prices(provenance: Mapping[str, Any]) -> Prices:
    """Return the prices that a run pins."""
    prices: Prices = msgspec.convert(provenance.get(PRICES, {}), Prices)
    return prices


class Runs:
    """Cache of run plans and demonstrations. Safe to share between threads: at worst, two read the same row.

    bring: takes over systems of files that the store has; None where this process runs none that it lacks.
    """

    def __init__(self, find_system: FindSystem, bring: Bring | None = None) -> None:
        self.find_system = find_system
        self._bring = bring
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
        if self._bring is not None and (text := row["provenance"].get("source")):
            self._bring(row["system"], text)
        return RunPlan(
            **{name: row[name] for name in RunBasics.__struct_fields__},
            shots={
                AnswerForm(form): self.demonstrations(connection, digest)
                for form, digest in row["demonstrations"].items()
            },
            binding=read_binding(row),
            # Of a run whose results must be its own, such as a repeat, steps have no twins: see
            # `cotrail.models.execution.adoption`.
            shared_in=row["experiment_id"] if row["reuse"] else None,
            served=row["served"],
            prices=read_prices(row["provenance"]),
            budgets=msgspec.convert(row["provenance"].get(BUDGETS, {}), Budgets, strict=False),
        )


# Labels of runs: a name and tags by which people find them. They may change at any time, so no digest covers them.


class Labels(Struct, frozen=True, kw_only=True):
    """A run's name, which other runs may have too, and its tags."""

    name: str | None = None
    tags: tuple[str, ...] = ()


NO_LABELS = Labels()


def save_labels(connection: Connection, run_id: str, labels: Labels) -> None:
    """Replace a run's labels by these."""
    values = {"name": labels.name, "tags": list(labels.tags)}
    row = insert(run_labels).values(run_id=run_id, **values)
    connection.execute(row.on_conflict_do_update(index_elements=[run_labels.c.run_id], set_=values))


def read_labels(connection: Connection, run_ids: Collection[str]) -> dict[str, Labels]:
    """Return the labels of these runs, by id; runs without any are left out."""
    rows = connection.execute(select(run_labels).where(run_labels.c.run_id.in_(run_ids)))
    return {row.run_id: Labels(name=row.name, tags=tuple(row.tags)) for row in rows}


def check_name(connection: Connection, name: str) -> None:
    """Refuse a new name that the beginning of a run's id may be, the run's own among them: others will begin so too."""
    begun = select(runs.c.id).where(runs.c.id.startswith(name, autoescape=True), *in_project(connection, runs))
    if other := connection.execute(begun.order_by(runs.c.created_at.desc()).limit(1)).scalar():
        raise InputError(
            f"{name!r} can't be a run's name: ids of runs begin with it, as {other} does, and RUN would mean any of "
            "these; choose another name"
        )


def namesakes(connection: Connection, run_id: str, name: str) -> list[str]:
    """Return the ids of the other runs that have this name, so that it finds none of them."""
    named = run_labels.c.name == name, run_labels.c.run_id != run_id
    others = select(run_labels.c.run_id).join(runs, runs.c.id == run_labels.c.run_id)
    others = others.where(*named, *in_project(connection, runs))
    return list(connection.execute(others.order_by(run_labels.c.run_id)).scalars())
