"""The APIs of embedding servers: what is sent, and the embeddings in what comes back."""

import binascii
from base64 import b64decode
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from cotrail.engines.embedding.cosine_similarity import Vector
from cotrail.engines.embedding.embedding_server import EmbeddingServer
from cotrail.engines.server_answers import Metered, by_index
from cotrail.errors import StepError, TransientStepError

Numbers = list[float] | str
"""An embedding, of any length: numbers, or base64 of 32-bit ones, the lowest byte first."""


class EmbeddingApi(Protocol):
    """An API; form: that of its answers."""

    form: Any

    def body(self, server: EmbeddingServer, texts: Sequence[str]) -> dict[str, Any]:
        """The request for the embeddings of texts."""

    def embeddings(self, answer: Any, count: int) -> list[Numbers]:
        """The embeddings of so many texts, in the texts' order; raises TransientStepError."""


class _Embedding(Struct, frozen=True):
    index: int
    embedding: Numbers


class _Embeddings(Metered, frozen=True, kw_only=True):
    data: list[_Embedding]


class OpenAIEmbeddings:
    """OpenAI's `/embeddings`."""

    form: Any = _Embeddings

    def body(self, server: EmbeddingServer, texts: Sequence[str]) -> dict[str, Any]:
        """See `EmbeddingApi`."""
        # Numbers are what all servers send unless told otherwise, and not all take the field.
        encoding = {"encoding_format": "base64"} if server.encoding == "base64" else {}
        return {"model": server.model, "input": list(texts), **encoding, **_dimensions(server)}

    def embeddings(self, answer: Any, count: int) -> list[Numbers]:
        """See `EmbeddingApi`."""
        return by_index(((each.index, each.embedding) for each in answer.data), count)


class TEIEmbeddings:
    """`/embed` of Hugging Face's text-embeddings-inference."""

    form: Any = list[list[float]]

    def body(self, server: EmbeddingServer, texts: Sequence[str]) -> dict[str, Any]:
        """See `EmbeddingApi`."""
        return {"inputs": list(texts), "normalize": True, **_dimensions(server)}

    def embeddings(self, answer: Any, count: int) -> list[Numbers]:
        """See `EmbeddingApi`."""
        return by_index(enumerate(answer), count)


EMBEDDING_APIS: dict[str, EmbeddingApi] = {"openai": OpenAIEmbeddings(), "tei": TEIEmbeddings()}
"""The APIs by the names that tables have for them."""


def vector_of(numbers: Numbers) -> Vector:
    """The embedding, of length 1. Raises StepError where it has no direction, TransientStepError."""
    vector = _unpacked(numbers) if isinstance(numbers, str) else np.array(numbers, np.float64)
    with np.errstate(all="ignore"):
        length = np.linalg.norm(vector)
    if not 0 < length < np.inf:
        raise StepError("the server answered an embedding of zeros, or of what isn't numbers: look at its model")
    return (vector / length).astype(np.float32)


def _unpacked(text: str) -> Any:
    try:
        return np.frombuffer(b64decode(text, validate=True), "<f4").astype(np.float64)
    except (binascii.Error, ValueError) as error:
        raise TransientStepError(
            f"the server answered an embedding that isn't 32-bit numbers in base64: {error}"
        ) from None


def _dimensions(server: EmbeddingServer) -> dict[str, Any]:
    return {"dimensions": server.dimensions} if server.dimensions else {}
