"""Embedders behind a server: what is sent, and the embeddings in what comes back."""

import binascii
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from cotrail.core.ports.encoders import Comparison, Side
from cotrail.core.ports.rate_limiter import RateLimiter
from cotrail.core.results import Embedded
from cotrail.engines.embedding.cosine_similarity import MOST_EMBEDDINGS, Vector, similarities, texts
from cotrail.engines.recent_results import RecentResults
from cotrail.engines.server_address import EmbeddingServer
from cotrail.engines.server_calls import Metered, ServerCalls, by_index
from cotrail.errors import BlockedError, ModelChangedError, StepError, TransientStepError

Numbers = list[float] | str
"""An embedding, of any length: numbers, or base64 of 32-bit ones, the lowest byte first."""


class _Embedding(Struct, frozen=True):
    index: int
    embedding: Numbers


class _Embeddings(Metered, frozen=True, kw_only=True):
    data: list[_Embedding]


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


class ServedEmbedder:
    """A model that a server runs; see `Embedder`.

    Texts that were asked for before are remembered, so that they cost nothing.
    server, identity: its table, and its identity; limiter: shares out what its account may use.
    Raises BlockedError where its API key isn't set.
    """

    def __init__(self, server: EmbeddingServer, identity: str, limiter: RateLimiter) -> None:
        self._server = server
        self.identity = identity
        self._calls = ServerCalls(server, limiter)
        self._recent: RecentResults[str, Vector] = RecentResults()
        self._dimensions = server.dimensions

    def compare(self, comparisons: Sequence[Comparison]) -> list[Embedded]:
        """See `Embedder`; raises UnavailableError, BlockedError and Interrupted too."""
        sides = [self._sides(comparison) for comparison in comparisons]
        vectors = self._vectors(list(dict.fromkeys(text for each in sides for side in each for text in side)))
        return [
            similarities([vectors[text] for text in rows], [vectors[text] for text in columns])
            for rows, columns in sides
        ]

    def embed(self, texts: Sequence[str], side: Side) -> Sequence[Vector]:
        """See `Embedder`; raises UnavailableError, BlockedError and Interrupted too."""
        before = self._server.query_prefix if side == "query" else self._server.text_prefix
        sent = [before + text for text in texts]
        vectors = self._vectors(list(dict.fromkeys(sent)))
        return [vectors[text] for text in sent]

    def interrupt(self) -> None:
        self._calls.interrupt()

    def _sides(self, comparison: Comparison) -> tuple[list[str], list[str]]:
        """The texts of the rows and of the columns, as the server is sent them."""
        rows, columns = texts(comparison)
        before = self._server.text_prefix if comparison.paragraphs else self._server.query_prefix
        return [self._server.query_prefix + text for text in rows], [before + text for text in columns]

    def _vectors(self, sent: list[str]) -> dict[str, Vector]:
        vectors = self._recent.known(sent)
        new, size = [text for text in sent if text not in vectors], self._server.batch_size
        for made in self._calls.at_once(self._made, [new[n : n + size] for n in range(0, len(new), size)]):
            vectors |= made
        return vectors

    def _made(self, sent: list[str]) -> dict[str, Vector]:
        vectors = list(map(vector_of, self._asked(sent)))
        for vector in vectors:
            self._check(len(vector))
        made = dict(zip(sent, vectors, strict=True))
        # At once, and not when all requests are answered: what was paid is kept where another one fails.
        self._recent.keep(made, MOST_EMBEDDINGS)
        return made

    def _asked(self, texts: list[str]) -> Sequence[Numbers]:
        """The embeddings that the server answers, in the texts' order."""
        server = self._server
        dimensions = {"dimensions": server.dimensions} if server.dimensions else {}
        if server.api == "tei":
            body = {"inputs": texts, "normalize": True, **dimensions}
            return by_index(enumerate(self._calls.ask(body, list[list[float]], texts)), len(texts))
        # Numbers are what all servers send unless asked otherwise, and not all take the field.
        encoding = {"encoding_format": "base64"} if server.encoding == "base64" else {}
        body = {"model": server.model, "input": texts, **encoding, **dimensions}
        answer = self._calls.ask(body, _Embeddings, texts)
        return by_index(((each.index, each.embedding) for each in answer.data), len(texts))

    def _check(self, dimensions: int) -> None:
        """Raises BlockedError where an embedding has another length than was asked for or than those before."""
        server = self._server
        if server.dimensions and dimensions != server.dimensions:
            raise BlockedError(
                f"{server.url} answers {dimensions} numbers a text, and the table of {server.model} asks for "
                f"{server.dimensions}: take `dimensions` out of it, start the workers again and submit the run again"
            )
        self._dimensions = self._dimensions or dimensions
        if dimensions != self._dimensions:
            raise ModelChangedError(
                f"{server.url} answers {dimensions} numbers a text, and answered {self._dimensions} before: it has "
                f"another model than {server.model} now; put that back, start the workers again, then "
                "`cotrail resume RUN`"
            )
