"""The corpora of a search server: an alias each, which leads to the index that is searched."""

from collections.abc import Iterable

from cotrail.paragraphs import Paragraph
from cotrail.retrieval.elasticsearch.building import DRAFT, build_index
from cotrail.retrieval.elasticsearch.client import Client
from cotrail.retrieval.elasticsearch.index import indexes
from cotrail.retrieval.elasticsearch.retriever import ElasticsearchRetriever
from cotrail.retrieval.manifest import IndexManifest, checked_name, unknown
from cotrail.retrieval.stores import Progress, SearchServer


class ElasticsearchStore:
    """The corpora of a server whose aliases begin with its prefix."""

    def __init__(self, server: SearchServer) -> None:
        self._client = Client(server)
        self._prefix = server.prefix

    def build(self, name: str, paragraphs: Iterable[Paragraph], progress: Progress | None = None) -> IndexManifest:
        """Indexes the paragraphs as the corpus of that name; CorpusError for one that the server doesn't take.

        Of two builds of one corpus the one begun later goes on.
        """
        alias = self._prefix + checked_name(name)
        return build_index(self._client, alias, paragraphs, progress or (lambda _count: None))

    def open(self, name: str) -> ElasticsearchRetriever:
        """The corpus of that name; UnknownNameError lists those there are."""
        alias = self._prefix + checked_name(name)
        retriever = ElasticsearchRetriever.opened(self._client, alias)
        if retriever is None:
            raise unknown(name, self.manifests())
        return retriever

    def manifests(self) -> dict[str, IndexManifest]:
        """The corpora by name, sorted."""
        found = {
            alias.removeprefix(self._prefix): index.manifest
            for index in indexes(self._client, f"{self._prefix}*").values()
            for alias in index.aliases
            if index.manifest and alias.startswith(self._prefix) and not alias.endswith(DRAFT)
        }
        return dict(sorted(found.items()))
