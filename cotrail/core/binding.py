"""Binding of a run: what it pins beside its system, and what therefore decides the results of its steps."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Binding(Struct, frozen=True, kw_only=True):
    """Everything that a run pins beside its system, and that decides the results of its steps.

    model: the name and digest of the model; profile: the serving profile; corpus: the index's revision.
    embedder, entailer: name and digest of the models that compare sentences.
    pins: the revision of each knowledge source, by its name. An engine of a further role is pinned here too, by the
        role's name: its identity then belongs to the run's sealed configuration without a column of its own.
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
