"""Binding of a run: what it pins in addition to its system, and what therefore decides the results of its steps."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cotrail.errors import InputError

MODEL = "model"
"""The role of the run's own language model."""

OWN_FIELDS = (MODEL, "embedder", "entailer")
"""The roles whose engines have a field of their own in a binding, as sealed columns do; `pins` holds all others."""

_DIGEST = re.compile(r"@[0-9a-f]+(?:\+|$)")
"""The digest in an engine's identity; behind it stands the language model that the engine asks, if any."""


class Binding(Struct, frozen=True, kw_only=True):
    """Everything that a run pins in addition to its system, and that decides the results of its steps.

    model: the name and digest of the model; profile: the serving profile.
    corpora: the revision of each corpus's index by its name; actions that name none mean the first.
    embedder, entailer: name and digest of the models that compare sentences.
    pins: the revision of each knowledge source, by its name. An engine of a further role is pinned here too, by the
        role's name: its identity then belongs to the run's sealed configuration without a column of its own.
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


EMBEDDING = "embedding"
"""The system of the runs that embed the paragraphs of a corpus, which nobody submits."""

FILTER = "filter"
"""The name among what a run pins of what the metadata of hits has to be."""

_KIND = re.compile(r"\{([A-Za-z_]\w{0,39})\}")
"""A kind of the question in a filter; in Lucene's syntax braces hold two ends of a range."""

_WORD = re.compile(r"(?!(?:AND|OR|NOT|IN|TO)$)\w[\w.-]{0,99}")
"""What can stand in a filter, as words with another meaning there can't."""


def filter_of(filter_: str, kinds: Mapping[str, str] | None, question: str = "") -> str:
    """The filter of the searches of one question, by its kinds, where it names some: `date:<{asked}`.

    kinds: None for any. Raises InputError where the question has none of that name, or one that isn't a word, a number
    or a date.
    """

    def kind(named: re.Match[str]) -> str:
        value = "0" if kinds is None else kinds.get(named[1], "")
        if not _WORD.fullmatch(value):
            raise InputError(
                f"the filter needs {named[0]} of each question, and question {question} has "
                f"{repr(value)[:100] if value else 'none'}: give its `kinds` a word, a number or a date as {named[1]}"
            )
        return value

    return _KIND.sub(kind, filter_)


SYSTEM_SOURCE = "system"
"""The name among what a run pins of the digest of its system's text, where that is an extension's."""

PINS = tuple(name for name in Binding.__struct_fields__ if name not in ("corpora", "pins"))
"""Fields of a binding that have a column of their name in `runs`. Digests seal these columns, so that their names never
change: `corpus` and `corpus_revision` have the first corpus, and `knowledge` the pins and further corpora."""

FURTHER_CORPUS = "corpus/"
"""Beginning of the names under which `runs.knowledge` has further corpora; nothing else that is pinned has a slash."""

NAMES: dict[str, str] = {"model": "model_name", "embedder": "embedder_name", "entailer": "entailer_name"}
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
