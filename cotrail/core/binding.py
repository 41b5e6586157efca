"""Binding of a run: what it pins beside its system, and what therefore decides the results of its steps."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import Struct

PinnedRole = Literal["extractor", "duplicate_rater", "relevance_rater"]
"""The engines of further roles, by the names under which runs name and pin them."""

PINNED_ROLES: tuple[PinnedRole, ...] = get_args(PinnedRole)


class Binding(Struct, frozen=True, kw_only=True):
    """Everything that a run pins beside its system, and that decides the results of its steps.

    model: the name and digest of the model; profile: the serving profile; corpus: the index's revision.
    embedder, entailer: name and digest of the models that compare sentences.
    pins: the revision of each knowledge source, by its name. An engine of a further role is pinned here too, by the
        role's name: its identity then belongs to the run's sealed configuration without a column of its own. The name
        by which it is opened is the beginning of its identity (`name_of`).
    All of these are empty where the system needs none.
    """

    model: str
    profile: str
    temperature: float
    seed: int
    corpus: str
    embedder: str = ""
    entailer: str = ""
    pins: dict[str, str] = {}

    def name_of(self, role: PinnedRole) -> str:
        """The name of the engine that is pinned for a role; empty where none is."""
        return name_in(self.pins.get(role, ""))


def name_in(identity: str) -> str:
    """The name that an identity begins with, before its digest."""
    return identity.rpartition("@")[0]


PINS: dict[str, str] = {name: name for name in Binding.__struct_fields__} | {
    "corpus": "corpus_revision",
    "pins": "knowledge",
}
"""Column of `runs` that holds each field of a binding. Digests seal these columns, so their names never change."""

NAMES: dict[str, str] = {
    "model": "model_name",
    "corpus": "corpus",
    "embedder": "embedder_name",
    "entailer": "entailer_name",
}
"""Column of `runs` that holds the name, as a person gave it, by which a pinned engine or corpus is opened."""


def read_binding(row: Mapping[Any, Any]) -> Binding:
    """Return the binding of a row of `runs`."""
    return Binding(**{field: row[column] for field, column in PINS.items()})


def pinned_columns(binding: Binding) -> dict[str, Any]:
    """Return the columns of `runs` that record a binding."""
    return {column: getattr(binding, field) for field, column in PINS.items()}
