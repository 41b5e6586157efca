"""The corpora of a search server: aliases that lead to indexes of ours, and existing indexes."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from cotrail.core.ports.retriever import Corpus
from cotrail.core.questions import Paragraph
from cotrail.engines.retrieval.elasticsearch.building import DRAFT, build_index, plain
from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient, RefusedError
from cotrail.engines.retrieval.elasticsearch.index import (
    ANALYZER,
    K1,
    MAPPINGS,
    SETTINGS,
    B,
    Located,
    extent,
    indexes,
    locate,
    locate_existing,
    remove,
)
from cotrail.engines.retrieval.elasticsearch.retriever import ElasticsearchRetriever
from cotrail.engines.retrieval.engine import (
    DEFAULT_INDEX,
    KEPT_EMBEDDINGS,
    NO_MODELS,
    Extent,
    NewIndex,
    ServerEngine,
    imported,
)
from cotrail.engines.retrieval.manifest import IndexManifest, Ranking, checked_name, similarity_of, unknown
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.errors import InputError

VECTORS = "cotrail.engines.retrieval.elasticsearch.vectors"
"""The module of embeddings, which alone needs numpy."""


class ElasticsearchStore:
    """The corpora of a server whose aliases begin with its prefix, and those that `search.toml` names.

    models: the file of the user's models; kept: the folder of embeddings that are kept.
    """

    def __init__(self, server: SearchServer, models: Path = NO_MODELS, kept: Path = Path(KEPT_EMBEDDINGS)) -> None:
        self._client = ElasticsearchClient(server)
        self._prefix = server.prefix
        self._settings = server.index
        self._existing = server.corpora
        self._models = models
        self._kept = kept

    def build(self, name: str, paragraphs: Iterable[Paragraph], new: NewIndex = DEFAULT_INDEX) -> IndexManifest:
        """Indexes the paragraphs as the corpus of that name; raises CorpusError for one that the server rejects.

        Of two concurrent builds of one corpus, the later one continues and the earlier one fails. Settings of indexes
        are in `search.toml`, and those given here are of one with embeddings.
        """
        if name in self._existing:
            raise InputError(f"the corpus {name!r} is an index that search.toml names, and is only read; take another")
        alias = self._prefix + checked_name(name)
        build = partial(build_index, self._client, alias, self._settings, paragraphs, new.progress, new.engine)
        if "late" in new.settings:
            raise InputError(
                "a search server takes no `--late`: add `--engine late` for a corpus in a folder, or leave it out and "
                "have what BM25 finds reranked (`--rerank NAME --rerank-depth 1000`)"
            )
        if "model" not in new.settings:
            if others := sorted(new.settings.keys() - {"fields"}):
                raise InputError(
                    f"only an index with embeddings, which has a `model`, has settings of its own: put {others[0]} "
                    "into search.toml, which has those of all indexes of the search server"
                )
            return build(partial(plain, fields=new.settings.get("fields", {})))
        if "recall" in new.settings:
            raise InputError("search on a server is exact: leave out `recall`, or take `--engine dense` for a folder")
        try:
            return build(
                partial(imported(VECTORS).embedding, values=new.settings, models=self._models, folder=self._kept)
            )
        except RefusedError as error:
            raise InputError(
                f"the search server takes no embeddings ({error}): Elasticsearch needs flat indexes of dense_vector, "
                "OpenSearch its k-NN plugin; leave out `--dense`, or take `--engine dense` for a corpus in a folder"
            ) from error

    def open(self, name: str) -> Corpus:
        retriever = self.by_words(name)
        if not similarity_of(retriever.manifest.analyzer):
            return retriever
        corpus: Corpus = imported(VECTORS).hybrid(retriever, self._models)
        return corpus

    def by_words(self, name: str) -> ElasticsearchRetriever:
        """The corpus of that name, searched by words; raises UnknownNameError."""
        locate = partial(self._located, checked_name(name))
        if (located := locate()) is None:
            raise unknown(name, self.manifests())
        return ElasticsearchRetriever(self._client, locate, located)

    def manifests(self) -> dict[str, IndexManifest]:
        manifests = {
            alias.removeprefix(self._prefix): index.manifest
            for index in indexes(self._client, f"{self._prefix}*").values()
            for alias in index.aliases
            if index.manifest and alias.startswith(self._prefix) and not alias.endswith(DRAFT)
        }
        located = ((name, self._located(name)) for name in self._existing)
        manifests |= {name: each.manifest for name, each in located if each}
        return dict(sorted(manifests.items()))

    def remove(self, name: str) -> None:
        """Deletes the index of that name; raises UnknownNameError, and InputError for one that search.toml names."""
        if name in self._existing:
            raise InputError(
                f"the corpus {name!r} is an index that search.toml names, and is only read; take it out there"
            )
        names = indexes(self._client, self._prefix + checked_name(name))
        if not names:
            raise unknown(name, self.manifests())
        for index in names:
            remove(self._client, index)

    def extent(self, name: str) -> Extent:
        located = self._located(name)
        if located is None:
            raise unknown(name, self.manifests())
        size, created = extent(self._client, located.name)
        return Extent(location=located.name, bytes=size, built_at=created)

    def _located(self, name: str) -> Located | None:
        existing = self._existing.get(name)
        return locate_existing(self._client, existing) if existing else locate(self._client, self._prefix + name)


ELASTICSEARCH = ServerEngine(
    name="elasticsearch",
    library="elasticsearch",
    ranking=Ranking(analyzer=ANALYZER, k1=K1, b=B),
    index=SETTINGS,
    mappings=MAPPINGS,
    store=ElasticsearchStore,
)
OPENSEARCH = replace(ELASTICSEARCH, name="opensearch")
