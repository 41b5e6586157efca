"""The file in which a user adds models of every kind (`models.toml`).

It has tables `[models.NAME]`, `[embedders.NAME]`, `[entailers.NAME]`, `[extractors.NAME]` and `[raters.NAME]`; the
`engine` of a table decides its other fields. Paths are relative to the file.
"""

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import msgspec
from msgspec import Struct

from cotrail.common.nearest import unknown
from cotrail.common.refusals import refusal
from cotrail.common.toml_files import read_toml
from cotrail.engines.optional_packages import Library
from cotrail.errors import InputError, NotInstalledError, UnknownNameError

ModelKind = Literal["model", "embedder", "entailer", "extractor", "rater"]


class _ModelsFile(Struct, frozen=True, forbid_unknown_fields=True):
    models: dict[str, dict[str, Any]] = {}
    embedders: dict[str, dict[str, Any]] = {}
    entailers: dict[str, dict[str, Any]] = {}
    extractors: dict[str, dict[str, Any]] = {}
    raters: dict[str, dict[str, Any]] = {}


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


class Installable(Protocol):
    """A model that may or may not be installed on this machine."""

    def check(self) -> None:
        """Raises NotInstalledError, which says how to get it, where it isn't installed."""


def listed(path: Path, kind: ModelKind, engines: Any, built_in: Container[str]) -> dict[str, Any]:
    """The engines of one kind that a file adds, by name; a missing file adds none.

    engines: the union of their classes, which differ in their tags; built_in: names that are taken.
    Raises InputError where the file is malformed.
    """
    tables: dict[str, dict[str, Any]] = getattr(_read(path), f"{kind}s")
    for name in tables:
        if name in built_in:
            raise InputError(f"{path}: {name} is the name of a built-in {kind}; take another")
    return {name: _engine(path, kind, name, table, engines) for name, table in tables.items()}


def choose(
    path: Path, kind: ModelKind, name: str | None, engines: Any, built_in: Mapping[str, Installable]
) -> tuple[str, Any, str]:
    """The model of that name, or the default one where None: its name, its engine, and a reason.

    The reason says why the default isn't the preferred one, and is empty where it is.
    Raises UnknownNameError, InputError, and NotInstalledError where it isn't installed.
    """
    known = {**built_in, **listed(path, kind, engines, built_in)}
    if name is None:
        chosen, instead = preferred(built_in)
        return chosen, built_in[chosen], instead
    if name not in known:
        raise UnknownNameError(f"{unknown(kind, name, sorted(known))}; add it to {path} as a table [{kind}s.{name}]")
    known[name].check()
    return name, known[name], ""


def preferred(engines: Mapping[str, Installable]) -> tuple[str, str]:
    """The first installed engine, and a sentence on why those before it weren't taken; empty where it is the first.

    Raises NotInstalledError where none is installed.
    """
    reasons = []
    for name, engine in engines.items():
        try:
            engine.check()
        except NotInstalledError as error:
            reasons.append(str(error))
        else:
            return name, f"{name} stands in for {next(iter(engines))}: {'; '.join(reasons)}" if reasons else ""
    raise NotInstalledError(f"none of {', '.join(engines)} is installed: {'; '.join(reasons)}")


def _read(path: Path) -> _ModelsFile:
    try:
        written = read_toml(path, "the list of models")
    except FileNotFoundError:
        return _ModelsFile()
    except OSError as error:
        raise InputError(f"the list of models {path} can't be read ({error.strerror}); check the path") from error
    try:
        return msgspec.convert(written, _ModelsFile)
    except msgspec.ValidationError as error:
        raise InputError(f"the list of models {path} is malformed: {refusal(error, _ModelsFile, written)}") from error


def _engine(path: Path, kind: ModelKind, name: str, table: dict[str, Any], engines: Any) -> Any:
    def beside(as_: type[Any], value: Any) -> Path:  # noqa: ARG001 - paths are all that msgspec doesn't know itself
        if not isinstance(value, str):
            raise TypeError("a path is a string")
        return path.parent / value

    try:
        return msgspec.convert(table, engines, dec_hook=beside)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: the {kind} {name} is malformed: {refusal(error, engines, table)}") from error
