"""Embedding servers, as the tables of `models.toml` describe them."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from cotrail.common.server_addresses import read_address
from cotrail.engines.text_server import TextServer


class EmbeddingServer(TextServer, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
        """See `TextServer`."""
        return "/embed" if self.api == "tei" else "/embeddings"
