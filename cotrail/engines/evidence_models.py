"""Models that compare, read and rate, as their catalogues know them: an engine that opens one, under a name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from cotrail.core.ports.language_model import Profile
from cotrail.engines.optional_packages import Library

ModelT = TypeVar("ModelT")
OpenedT = TypeVar("OpenedT", covariant=True)


class EvidenceEngine(Protocol[OpenedT]):
    """Opens a model in one kind of engine."""

    @property
    def library(self) -> Library:
        """See `OnLibrary`."""

    def check(self) -> None:
        """Raises NotInstalledError, which says how to get it, where it isn't installed."""

    def identity(self, name: str) -> str:
        """The identity of the model that `open(name, ...)` would return, without loading it."""

    def open(self, name: str, profile: Profile) -> OpenedT:
        """The loaded model."""


class BuiltIn(Struct, Generic[ModelT], frozen=True):
    """A published model.

    folder: returns its folder, or raises NotInstalledError; engine: the engine for a folder, which is its `path`.
    """

    folder: Callable[[], Path]
    engine: type[Any]

    @property
    def library(self) -> Library:
        """See `OnLibrary`."""
        library: Library = self.engine.library
        return library

    @property
    def engine_name(self) -> str:
        """The name of the engine, as `models.toml` has it."""
        return str(self.engine.__struct_config__.tag)

    @property
    def location(self) -> str:
        """Its folder; raises NotInstalledError."""
        return str(self.folder())

    def check(self) -> None:
        """See `EvidenceEngine`."""
        self.folder()

    def identity(self, name: str) -> str:
        """See `EvidenceEngine`."""
        return self._engine.identity(name)

    def open(self, name: str, profile: Profile) -> ModelT:
        """See `EvidenceEngine`."""
        return self._engine.open(name, profile)

    @property
    def _engine(self) -> EvidenceEngine[ModelT]:
        engine: EvidenceEngine[ModelT] = self.engine(path=self.folder())
        return engine


class EvidenceSpec(Struct, Generic[ModelT], frozen=True, kw_only=True):
    """A model's name and the engine that runs it.

    instead: a sentence on why it replaces the preferred one; empty where it doesn't.
    """

    name: str
    engine: EvidenceEngine[ModelT]
    instead: str = ""

    def identity(self) -> str:
        """The identity of the opened model, without loading it; raises InputError, NotInstalledError."""
        return self.engine.identity(self.name)

    def open(self, profile: Profile) -> ModelT:
        """The loaded model; raises InputError, NotInstalledError."""
        return self.engine.open(self.name, profile)
