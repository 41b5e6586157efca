"""Address of a model behind a server, and the limits of requests to it, as every table of `models.toml` has them.

Servers that are sent texts and answer numbers: embeddings and reranking.
"""

import hashlib
import os
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from cotrail.common.server_addresses import read_address
from cotrail.common.structs import canonical, unusual

Rate = Annotated[int, Meta(ge=1)] | None

IN_FLIGHT = 256
"""How many requests a server is sent at once unless its table says otherwise."""


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an account may use of a model in a minute; None for what isn't limited, or is said by the server."""

    requests: Rate = None
    input_tokens: Rate = None
    output_tokens: Rate = None


VariableName = Annotated[
    str,
    Meta(
        pattern="^[A-Z_][A-Z0-9_]*$",
        description="the name of an environment variable in capitals, as GPU1_KEY, which holds the key",
    ),
]


def key_in(variable: str) -> str:
    """The API key that an environment variable holds; empty where it holds none that a header can have."""
    key = os.environ.get(variable, "").strip()
    return key if key.isascii() and key.isprintable() else ""


class ServerAddress(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a model is served.

    url: where the API begins, e.g. `http://gpu1:8000/v1`. model: the server's name for the model.
    key_variable: the environment variable, in capitals, that holds the API key. The key itself is written nowhere.
    revision: a free description of the weights behind the name, since what a server holds can't be digested.
    in_flight: the most requests under way at once, further ones wait; None for 256, and for as many as its account's
        limits let under way where a provider runs the model.
    timeout_seconds: how long the server may be silent. extra: further fields of each request.
    account: what the provider's limits belong to, by default the variable of the key and the host. limits: see
    `Limits`. file: where its table is, in messages.
    """

    file: ClassVar[str] = "the list of models"

    url: str
    model: Annotated[str, Meta(min_length=1)]
    key_variable: VariableName | None = None
    revision: str = ""
    in_flight: Annotated[int, Meta(ge=1)] | None = None
    timeout_seconds: Annotated[float, Meta(gt=0)] = 300.0
    extra: dict[str, Any] = {}
    account: str = ""
    limits: Limits | None = None

    def __post_init__(self) -> None:
        try:
            address = read_address(self.url, ("http", "https"))
        except ValueError as error:
            raise ValueError(f"the url isn't that of a server: {error}; it reads like http://host:8000/v1") from None
        if address.user is not None or address.query:
            raise ValueError(
                "the url holds more than an address; a key belongs into the variable that key_variable names"
            )
        if not address.host:
            raise ValueError("the url isn't that of a server; it reads like http://host:8000/v1")

    @property
    def is_hosted(self) -> bool:
        """Return whether a provider runs the model, which charges for it and limits its use."""
        is_shared = self.account or self.limits
        return bool(is_shared) or (self.key_variable is not None and self.url.startswith("https:"))

    @property
    def most_in_flight(self) -> int | None:
        """The most requests under way at once; None where only the account's limits bound them."""
        return self.in_flight or (None if self.is_hosted else IN_FLIGHT)

    @property
    def account_name(self) -> str:
        """What the provider's limits belong to."""
        host = read_address(self.url, ("http", "https")).host
        return self.account or f"{self.key_variable}@{host}"

    @property
    def for_long_texts(self) -> str:
        """What to do where the server finds a text too long, behind its message."""
        return "have what is too long cut"


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
