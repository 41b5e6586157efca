"""Servers that are sent texts and answer numbers, by the tables of `models.toml`: embeddings and reranking."""

import hashlib
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from cotrail.common.server_addresses import read_address
from cotrail.common.structs import canonical, unusual
from cotrail.engines.server_address import ServerAddress

# Servers that are sent texts and answer numbers, as the tables of `models.toml` describe them.


class TextServer(ServerAddress, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Address of such a server.

    batch_size: the most texts of a request.
    path: of requests, behind the URL. decides: the fields that decide the model's output, apart from each server's.
    """

    decides: ClassVar[tuple[str, ...]] = ()

    in_flight: Annotated[int, Meta(ge=1)] = 16
    batch_size: Annotated[int, Meta(ge=1)] = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.url.endswith(("/", self.path)):
            raise ValueError(f"the url is where the API begins: leave out its end, {self.path} or /")

    @property
    def path(self) -> str:
        """See the class."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """The SHA-256 of everything known that decides the output. The address isn't part of it, as it may change."""
        decides = {"model": self.model, "revision": self.revision, **unusual(self, "extra", *self.decides)}
        return hashlib.sha256(canonical(decides)).hexdigest()

    @property
    def for_long_texts(self) -> str:
        return (
            f"have the server cut what is too long, by `extra` in the table of {self.model}: "
            "{ truncate = true } for TEI, { truncate_prompt_tokens = -1 } for vLLM"
        )


# Embedding servers, as the tables of `models.toml` describe them.


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
        return "/embed" if self.api == "tei" else "/embeddings"


# Rerank servers, as the tables of `models.toml` describe them.


class RerankServer(TextServer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rater behind a server.

    api: `rerank` for the `/rerank` of vLLM, llama.cpp, Jina and Cohere, `tei` for that of Hugging Face's
        text-embeddings-inference.
    raw_scores: whether TEI's scores are the model's outputs, and not probabilities.
    """

    decides: ClassVar[tuple[str, ...]] = ("api", "raw_scores")

    api: Literal["rerank", "tei"] = "rerank"
    raw_scores: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.raw_scores and self.api != "tei":
            raise ValueError('raw_scores is for api = "tei": other servers have one kind of score')

    @property
    def path(self) -> str:
        return "/rerank"
