"""Embedders behind a server."""

from collections.abc import Sequence

from cotrail.core.ports.embedder import Comparison
from cotrail.core.ports.rate_limiter import RateLimiter
from cotrail.core.results import Embedded
from cotrail.engines.embedding.cosine_similarity import MOST_EMBEDDINGS, Vector, similarities, texts
from cotrail.engines.embedding.embedding_server import EmbeddingServer
from cotrail.engines.embedding.server_apis import EMBEDDING_APIS, vector_of
from cotrail.engines.recent_results import RecentResults
from cotrail.engines.server_calls import ServerCalls
from cotrail.errors import BlockedError, ModelChangedError


class ServedEmbedder:
    """A model that a server runs. Texts that were asked for before are remembered, so that they cost nothing.

    server, identity: its table, and its identity; limiter: shares out what its account may use.
    Raises BlockedError where its API key isn't set.
    """

    def __init__(self, server: EmbeddingServer, identity: str, limiter: RateLimiter) -> None:
        self._server = server
        self._identity = identity
        self._api = EMBEDDING_APIS[server.api]
        self._calls = ServerCalls(server, limiter)
        self._recent: RecentResults[str, Vector] = RecentResults()
        self._dimensions = server.dimensions

    @property
    def identity(self) -> str:
        """See `Embedder`."""
        return self._identity

    def compare(self, comparisons: Sequence[Comparison]) -> list[Embedded]:
        """See `Embedder`; raises UnavailableError, BlockedError and Interrupted too."""
        sides = [self._sides(comparison) for comparison in comparisons]
        vectors = self._vectors(list(dict.fromkeys(text for each in sides for side in each for text in side)))
        return [
            similarities([vectors[text] for text in rows], [vectors[text] for text in columns])
            for rows, columns in sides
        ]

    def interrupt(self) -> None:
        """Ends every call, now and from now on, with Interrupted."""
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
        answer = self._calls.ask(self._api.body(self._server, sent), self._api.form, sent)
        vectors = [vector_of(each) for each in self._api.embeddings(answer, len(sent))]
        for vector in vectors:
            self._check(len(vector))
        made = dict(zip(sent, vectors, strict=True))
        # At once, and not when all requests are answered: what was paid is kept where another one fails.
        self._recent.keep(made, MOST_EMBEDDINGS)
        return made

    def _check(self, dimensions: int) -> None:
        """Raises BlockedError where an embedding has another length than was asked for or than those before."""
        server = self._server
        if server.dimensions and dimensions != server.dimensions:
            raise BlockedError(
                f"{server.url} answers {dimensions} numbers a text, and the table of {server.model} asks for "
                f"{server.dimensions}: take `dimensions` out of it, start the workers again and submit the run anew"
            )
        self._dimensions = self._dimensions or dimensions
        if dimensions != self._dimensions:
            raise ModelChangedError(
                f"{server.url} answers {dimensions} numbers a text, and answered {self._dimensions} before: it has "
                f"another model than {server.model} now; put that back, start the workers again, then "
                "`cotrail resume RUN`"
            )
