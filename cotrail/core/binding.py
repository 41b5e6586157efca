"""Binding of a run: what it pins beside its system, and what therefore decides the results of its steps."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

MODEL = "model"
"""The role of the run's own language model."""

OWN_FIELDS = (MODEL, "embedder", "entailer")
"""The roles whose engines have a field of their own in a binding, as sealed columns do; `pins` holds all others."""


_DIGEST = re.compile(r"@[0-9a-f]+(?:\+|$)")
"""The digest in an engine's identity; behind it stands the language model that the engine asks, if any."""


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

    def engine(self, role: str) -> str:
        """The identity of the engine that is pinned for a role; empty where none is."""
        identity: str = getattr(self, role) if role in OWN_FIELDS else self.pins.get(role, "")
        return identity


def with_engines(binding: Binding, identities: Mapping[str, str]) -> Binding:
    """The binding with these engines, by role."""
    own = {role: identity for role, identity in identities.items() if role in OWN_FIELDS}
    others = {role: identity for role, identity in identities.items() if role not in OWN_FIELDS}
    return replace(binding, **own, pins=binding.pins | others)


def name_in(identity: str) -> str:
    """The name that the identity of an engine in `pins` begins with, by which it is opened."""
    return _DIGEST.split(identity, maxsplit=1)[0]


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
