"""The file in which a user adds engines of every kind (`models.toml`).

It has tables `[models.NAME]`, and for each kind that a role takes such as `[embedders.NAME]`; the `engine` of a table
decides its other fields. Paths are relative to the file.
"""

from collections.abc import Container
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from cotrail.common.optional_packages import Library
from cotrail.common.refusals import refusal
from cotrail.common.toml_files import read_toml_or_empty
from cotrail.core.ports.encoders import ROLES
from cotrail.errors import InputError

LANGUAGE_MODEL = "model"
"""The kind of language models; the other kinds are those that roles take."""


class EngineTable(Struct, frozen=True, forbid_unknown_fields=True, tag_field="engine"):
    """A table for a model in this process: its `engine` is the tag, and `path` its file or folder."""

    library: ClassVar[Library] = None

    path: Path

    @property
    def engine_name(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def location(self) -> str:
        """Its file or folder."""
        return str(self.path)

    def check(self) -> None:
        """See `Installable`: a path that leads nowhere is found when the identity is asked for."""


class ModelTable(Struct, frozen=True, kw_only=True):
    """A form of models that an extension adds: tables `[KINDs.NAME]` with the `engine` that its class is tagged with.

    kind: `model`, `embedder` and so on. table: an `EngineTable` that is, for `model`, a `ModelEngine`
        (`cotrail.engines.language_models.catalogue`), else an `OpensEngine` (`cotrail.engines.engine_catalogue`).
    """

    kind: str
    table: type[EngineTable]

    @property
    def name(self) -> str:
        """The `engine` of its tables, with the kind."""
        return f"{self.kind} {self.table.__struct_config__.tag}"


MODEL_TABLES: dict[str, ModelTable] = {}
"""Those of extensions by name."""


def kinds() -> tuple[str, ...]:
    """Every kind of engine, language models first."""
    return tuple(dict.fromkeys([LANGUAGE_MODEL, *(role.kind for role in ROLES.values())]))


class Malformed(Struct, frozen=True):
    """Stands for a table that makes no engine: its fault is its own model's, and no other's.

    problem: what is wrong with it, in a sentence; engine_name: the `engine` that it names, empty where it names none.
    """

    problem: str
    engine_name: str = ""
    location: ClassVar[str] = ""

    def check(self) -> None:
        """Raises InputError with the problem."""
        raise InputError(self.problem)


def usable(engine: Any) -> Any:
    """The engine itself; raises InputError where its table makes none."""
    if isinstance(engine, Malformed):
        engine.check()
    return engine


def listed(path: Path, kind: str, engines: Any, built_in: Container[str]) -> dict[str, Any]:
    """The engines of one kind that a file adds, by name; a missing file adds none. Each table is read by itself.

    engines: the union of their classes, which differ in their tags; built_in: names that are taken.
    A table that makes none is `Malformed`. Raises InputError where the file can't be read at all.
    """
    for added in MODEL_TABLES.values():
        engines = engines | added.table if added.kind == kind else engines
    return {name: _listed(path, kind, name, table, engines, built_in) for name, table in tables_of(path, kind).items()}


def _listed(path: Path, kind: str, name: str, table: Any, engines: Any, built_in: Container[str]) -> Any:
    named = table.get("engine") if isinstance(table, dict) else None
    engine_name = named if isinstance(named, str) else ""
    if name in built_in:
        problem = f"{path}: {name} is the name of a built-in {kind}; take another"
        return Malformed(problem=problem, engine_name=engine_name)
    try:
        return engine_of(path, kind, name, table, engines)
    except InputError as error:
        return Malformed(problem=str(error), engine_name=engine_name)


def tables_of(path: Path, kind: str) -> dict[str, Any]:
    """What a file has under a kind, by name: tables as they stand there, if they are any; nothing if it is missing.

    Raises InputError where the file isn't TOML.
    """
    tables = read_toml_or_empty(path, "the list of models").get(f"{kind}s")
    return tables if isinstance(tables, dict) else {}


def strays(path: Path) -> dict[str, Malformed]:
    """What a file holds apart from tables of engines, by its first key: a kind that is misspelt, say."""
    form, found = _form(kinds()), dict[str, Malformed]()
    for key, value in read_toml_or_empty(path, "the list of models").items():
        try:
            msgspec.convert({key: value}, form)
        except msgspec.ValidationError as error:
            found[key] = Malformed(
                problem=f"the list of models {path} is malformed: {refusal(error, form, {key: value})}"
            )
    return found


def strays_in_words(path: Path) -> str:
    """The same, to stand behind what is said of a name that isn't there."""
    return "".join(f"; {stray.problem}" for stray in strays(path).values())


@cache
def _form(of: tuple[str, ...]) -> Any:
    """What the file may hold: a dictionary of tables for each kind."""
    fields: list[tuple[str, Any, Any]] = [(f"{kind}s", dict[str, Any], {}) for kind in of]
    return msgspec.defstruct("ModelsFile", fields, frozen=True, forbid_unknown_fields=True)


def engine_of(path: Path, kind: str, name: str, table: Any, engines: Any) -> Any:
    """The engine that a table makes; path: of the file, which the table's paths are relative to. Raises InputError."""

    def resolved(as_: type[Any], value: Any) -> Path:  # noqa: ARG001 - paths are all that msgspec doesn't know itself
        if not isinstance(value, str):
            raise TypeError("a path is a string")
        return path.parent / value

    try:
        return msgspec.convert(table, engines, dec_hook=resolved)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: the {kind} {name} is malformed: {refusal(error, engines, table)}") from error
