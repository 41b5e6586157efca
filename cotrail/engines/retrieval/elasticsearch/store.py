"""The corpora of a search server: aliases that lead to indexes of ours, and existing indexes."""

from collections.abc import Iterable
from functools import partial

from msgspec.structs import replace

from cotrail.core.questions import Paragraph
from cotrail.engines.retrieval.elasticsearch.building import DRAFT, build_index
from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient
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
from cotrail.engines.retrieval.engine import DEFAULT_INDEX, CountCallback, Extent, NewIndex, ServerEngine
from cotrail.engines.retrieval.manifest import IndexManifest, Ranking, checked_name, unknown
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.errors import InputError


class ElasticsearchStore:
    """The corpora of a server whose aliases begin with its prefix, and those that `search.toml` names."""

    def __init__(self, server: SearchServer) -> None:
        self._client = ElasticsearchClient(server)
        self._prefix = server.prefix
        self._settings = server.index
        self._existing = server.corpora

    def build(
        self,
        name: str,
        paragraphs: Iterable[Paragraph],
        progress: CountCallback | None = None,
        new: NewIndex = DEFAULT_INDEX,
    ) -> IndexManifest:
        """Indexes the paragraphs as the corpus of that name; raises CorpusError for one that the server rejects.

        Of two concurrent builds of one corpus, the later one continues and the earlier one fails. Settings of indexes
        are in `search.toml`.
        """
        if new.settings:
            raise InputError(
                f"search.toml has the settings of the search server's indexes; put {min(new.settings)} there"
            )
        if name in self._existing:
            raise InputError(f"the corpus {name!r} is an index that search.toml names, and is only read; take another")
        alias = self._prefix + checked_name(name)
        return build_index(
            self._client, alias, self._settings, paragraphs, progress or (lambda _count: None), new.engine
        )

    def open(self, name: str) -> ElasticsearchRetriever:
        """The corpus of that name; raises UnknownNameError, which lists those there are."""
        retriever = ElasticsearchRetriever.opened(self._client, partial(self._located, checked_name(name)))
        if retriever is None:
            raise unknown(name, self.manifests())
        return retriever

    def manifests(self) -> dict[str, IndexManifest]:
        """The manifests of the corpora by name, sorted."""
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
        """The size of the index's primary shards, and when it was created."""
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
