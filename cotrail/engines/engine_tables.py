"""What the tables of engines in `models.toml` have in common: models in folders, scripts, and published models."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct

from cotrail.core.ports.language_model import Profile
from cotrail.engines.engine_catalogue import OpenModel, OpensEngine
from cotrail.engines.model_folders import folder_digest
from cotrail.engines.model_identity import model_identity
from cotrail.engines.models_file import EngineTable
from cotrail.engines.optional_packages import Library, installed_with
from cotrail.engines.script_files import ScriptedEngine

OpenedT = TypeVar("OpenedT")


class FolderTable(EngineTable, frozen=True):
    """A model in this process, on its GPU if it has one; path: the folder that a library saved it to.

    A table derived from it says what `load` returns; the extra `evidence` installs its library.
    """

    def load(self, identity: str, profile: Profile) -> Any:
        """The model of that identity. It imports its library here, which takes seconds and may not be installed."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """The SHA-256 of all that decides the model's output; raises InputError."""
        return folder_digest(self.path)

    def identity(self, name: str, model: str) -> str:  # noqa: ARG002 - it asks no language model
        """See `OpensEngine`."""
        return model_identity(name, self.digest)

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> Any:  # noqa: ARG002 - as above
        """See `OpensEngine`."""
        with installed_with("evidence"):
            return self.load(model_identity(name, self.digest), profile)


class ScriptTable(EngineTable, frozen=True):
    """A scripted engine; path: its script."""

    scripted: ClassVar[type[ScriptedEngine[Any]]]

    def identity(self, name: str, model: str) -> str:  # noqa: ARG002 - it asks no language model
        """See `OpensEngine`."""
        return self.scripted(self.path, name).identity

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> Any:  # noqa: ARG002 - profiles mean the same
        """See `OpensEngine`."""
        return self.scripted(self.path, name)


class BuiltIn(Struct, Generic[OpenedT], frozen=True):
    """A published model.

    folder: returns its folder, or raises NotInstalledError; table: the class of a table with that folder as its `path`.
    fields: the table's other fields.
    """

    folder: Callable[[], Path]
    table: type[Any]
    fields: Mapping[str, Any] = {}

    @property
    def library(self) -> Library:
        """See `OnLibrary`."""
        library: Library = self.table.library
        return library

    @property
    def engine_name(self) -> str:
        """The name of the engine, as `models.toml` has it."""
        return str(self.table.__struct_config__.tag)

    @property
    def location(self) -> str:
        """Its folder; raises NotInstalledError."""
        return str(self.folder())

    def check(self) -> None:
        """See `Installable`."""
        self.folder()

    def identity(self, name: str, model: str) -> str:
        """See `OpensEngine`."""
        return self._opened.identity(name, model)

    def open(self, name: str, profile: Profile, open_model: OpenModel) -> OpenedT:
        """See `OpensEngine`."""
        return self._opened.open(name, profile, open_model)

    @property
    def _opened(self) -> OpensEngine[OpenedT]:
        table: OpensEngine[OpenedT] = self.table(path=self.folder(), **self.fields)
        return table
