"""Catalogues of engines: those of one kind, which are the built-in ones and the tables of a user's `models.toml`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from cotrail.common.nearest import unknown
from cotrail.core.ports.language_model import LanguageModel, Profile
from cotrail.engines.models_file import listed
from cotrail.engines.optional_packages import Library
from cotrail.errors import InputError, NotInstalledError, UnknownNameError

OpenModel = Callable[[], LanguageModel]
"""Opens the run's own language model; called only by an engine that asks it."""


def no_model() -> LanguageModel:
    """Stands in for `OpenModel` outside of runs; raises InputError."""
    raise InputError("this engine asks the language model of a run, and there is none")


OpenedT = TypeVar("OpenedT", covariant=True)


class Installable(Protocol):
    """An engine that may or may not be installed on this machine."""

    def check(self) -> None:
        """Raises NotInstalledError, which says how to get it, where it isn't installed."""


class OpensEngine(Installable, Protocol[OpenedT]):
    """Opens an engine."""

    @property
    def library(self) -> Library:
        """See `OnLibrary`."""

    def identity(self, name: str, model: str) -> str:
        """The identity of the engine that `open(name, ...)` would return, without loading it.

        model: the identity of the run's language model, which counts for an engine that asks it.
        """

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> OpenedT:
        """The loaded engine."""


class EngineCatalogue(Struct, Generic[OpenedT], frozen=True, kw_only=True):
    """The engines of one kind.

    kind: as roles name it. tables: the classes of its tables in `models.toml`, a union, by their `engine`.
    built_in: those that need no table, by name; where a role has a default, it is the first that is installed.
    """

    kind: str
    tables: Any
    built_in: Mapping[str, OpensEngine[OpenedT]] = {}

    def all(self, path: Path) -> dict[str, OpensEngine[OpenedT]]:
        """Every engine by name, installed or not; path: `models.toml`. Raises InputError where that is malformed."""
        return {**self.built_in, **listed(path, self.kind, self.tables, self.built_in)}

    def find(self, path: Path, name: str | None = None) -> "NamedEngine[OpenedT]":
        """The engine of that name, or the default one where None; path: `models.toml`.

        Raises UnknownNameError, InputError, and NotInstalledError where it isn't installed.
        """
        engines = self.all(path)
        if name is None:
            default, instead = preferred(self.built_in)
            return NamedEngine(name=default, engine=engines[default], instead=instead)
        if name not in engines:
            there = unknown(self.kind, name, sorted(engines))
            raise UnknownNameError(f"{there}; add it to {path} as a table [{self.kind}s.{name}]")
        engines[name].check()
        return NamedEngine(name=name, engine=engines[name])


class NamedEngine(Struct, Generic[OpenedT], frozen=True, kw_only=True):
    """An engine under the name that it has in its catalogue.

    instead: a sentence on why it replaces the preferred one; empty where it doesn't.
    """

    name: str
    engine: OpensEngine[OpenedT]
    instead: str = ""

    def identity(self, model: str = "") -> str:
        """The identity of the opened engine, without loading it; raises InputError, NotInstalledError.

        model: the identity of the run's language model.
        """
        return self.engine.identity(self.name, model)

    def open(self, profile: Profile, open_model: OpenModel = no_model) -> OpenedT:
        """The loaded engine; raises InputError, NotInstalledError, and what `open_model` raises."""
        return self.engine.open(self.name, profile, open_model)


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
