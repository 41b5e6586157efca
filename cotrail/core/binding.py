"""Binding of a run: what it pins beside its system, and what therefore decides the results of its steps."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import Struct

PinnedRole = Literal["extractor", "duplicate_rater", "relevance_rater"]
"""The engines of further roles, by the names under which runs name and pin them."""

PINNED_ROLES: tuple[PinnedRole, ...] = get_args(PinnedRole)


class Binding(Struct, frozen=True, kw_only=True):
    """Everything that a run pins beside its system, and that decides the results of its steps.

    model: the name and digest of the model; profile: the serving profile.
    corpora: the revision of each corpus's index by its name; actions that name none mean the first.
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
    corpora: dict[str, str] = {}
    embedder: str = ""
    entailer: str = ""
    pins: dict[str, str] = {}

    def corpus(self, name: str = "") -> tuple[str, str]:
        """Name and revision of the corpus that an action means, which may name one; empty where none is pinned."""
        name = name or next(iter(self.corpora), "")
        return name, self.corpora.get(name, "")

    def name_of(self, role: PinnedRole) -> str:
        """The name of the engine that is pinned for a role; empty where none is."""
        return name_in(self.pins.get(role, ""))


def name_in(identity: str) -> str:
    """The name that an identity begins with, before its digest."""
    return identity.rpartition("@")[0]


PINS = tuple(name for name in Binding.__struct_fields__ if name not in ("corpora", "pins"))
"""Fields of a binding that have a column of their name in `runs`. Digests seal these columns, so that their names never
change: `corpus` and `corpus_revision` have the first corpus, and `knowledge` the pins and further corpora."""

FURTHER_CORPUS = "corpus/"
"""Beginning of the names under which `runs.knowledge` has further corpora; nothing else that is pinned has a slash."""

NAMES: dict[str, str] = {
    "model": "model_name",
    "embedder": "embedder_name",
    "entailer": "entailer_name",
}
"""Column of `runs` that holds the name, as a person gave it, by which a pinned engine is opened."""


def read_binding(row: Mapping[Any, Any]) -> Binding:
    """Return the binding of a row of `runs`."""
    pins = {name: pin for name, pin in row["knowledge"].items() if not name.startswith(FURTHER_CORPUS)}
    return Binding(**{name: row[name] for name in PINS}, corpora=read_corpora(row), pins=pins)


def read_corpora(row: Mapping[Any, Any]) -> dict[str, str]:
    """Return the revisions of the corpora of a row of `runs` by their names, the first one first."""
    first = {row["corpus"] or "": row["corpus_revision"]} if row["corpus_revision"] else {}
    further = (name for name in sorted(row["knowledge"]) if name.startswith(FURTHER_CORPUS))
    return first | {name.removeprefix(FURTHER_CORPUS): row["knowledge"][name] for name in further}


def pinned_columns(binding: Binding) -> dict[str, Any]:
    """Return the columns of `runs` that record a binding."""
    (name, revision), *further = binding.corpora.items() or [(None, "")]
    pins = binding.pins | {f"{FURTHER_CORPUS}{each}": pin for each, pin in further}
    columns = {name: getattr(binding, name) for name in PINS}
    return columns | {"corpus": name, "corpus_revision": revision, "knowledge": pins}
