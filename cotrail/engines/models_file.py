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

from cotrail.common.refusals import refusal
from cotrail.common.toml_files import read_toml
from cotrail.core.ports.roles import ROLES
from cotrail.engines.optional_packages import Library
from cotrail.errors import InputError

LANGUAGE_MODEL = "model"
"""The kind of language models; the other kinds are those that roles take."""


class EngineTable(Struct, frozen=True, forbid_unknown_fields=True, tag_field="engine"):
    """A table for a model in this process: its `engine` is the tag, and `path` its file or folder."""

    library: ClassVar[Library] = None

    path: Path

    @property
    def engine_name(self) -> str:
        """The name of the engine, as `models.toml` has it."""
        return str(self.__struct_config__.tag)

    @property
    def location(self) -> str:
        """Its file or folder."""
        return str(self.path)

    def check(self) -> None:
        """See `Installable`: a path that leads nowhere is found when the identity is asked for."""


def kinds() -> tuple[str, ...]:
    """Every kind of engine, language models first."""
    return tuple(dict.fromkeys([LANGUAGE_MODEL, *(role.kind for role in ROLES.values())]))


def listed(path: Path, kind: str, engines: Any, built_in: Container[str]) -> dict[str, Any]:
    """The engines of one kind that a file adds, by name; a missing file adds none.

    engines: the union of their classes, which differ in their tags; built_in: names that are taken.
    Raises InputError where the file is malformed.
    """
    tables = tables_of(path, kind)
    for name in tables:
        if name in built_in:
            raise InputError(f"{path}: {name} is the name of a built-in {kind}; take another")
    return {name: engine_of(path, kind, name, table, engines) for name, table in tables.items()}


def tables_of(path: Path, kind: str) -> dict[str, dict[str, Any]]:
    """The tables of one kind as they stand in a file, by name, whether or not they make engines; none if it is missing.

    Raises InputError where the file isn't TOML, or holds something else than tables of engines.
    """
    tables: dict[str, dict[str, Any]] = getattr(_read(path, _form(tuple(dict.fromkeys([*kinds(), kind])))), f"{kind}s")
    return tables


@cache
def _form(of: tuple[str, ...]) -> Any:
    """What the file may hold: a dictionary of tables for each kind."""
    fields: list[tuple[str, Any, Any]] = [(f"{kind}s", dict[str, dict[str, Any]], {}) for kind in of]
    return msgspec.defstruct("ModelsFile", fields, frozen=True, forbid_unknown_fields=True)


def _read(path: Path, form: Any) -> Any:
    try:
        document = read_toml(path, "the list of models")
    except FileNotFoundError:
        return form()
    except OSError as error:
        raise InputError(f"the list of models {path} can't be read ({error.strerror}); check the path") from error
    try:
        return msgspec.convert(document, form)
    except msgspec.ValidationError as error:
        raise InputError(f"the list of models {path} is malformed: {refusal(error, form, document)}") from error


def engine_of(path: Path, kind: str, name: str, table: dict[str, Any], engines: Any) -> Any:
    """The engine that a table makes; path: of the file, which the table's paths are relative to. Raises InputError."""

    def beside(as_: type[Any], value: Any) -> Path:  # noqa: ARG001 - paths are all that msgspec doesn't know itself
        if not isinstance(value, str):
            raise TypeError("a path is a string")
        return path.parent / value

    try:
        return msgspec.convert(table, engines, dec_hook=beside)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: the {kind} {name} is malformed: {refusal(error, engines, table)}") from error
