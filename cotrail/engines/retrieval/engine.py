"""A search engine whose indexes are corpora: one record of how they are built and opened.

A new one is a module with such a record, and a line in `registry`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.retriever import Corpus
from cotrail.engines.retrieval.corpus_store import CorpusStore
from cotrail.engines.retrieval.index_manifest import FolderManifest, Ranking
from cotrail.engines.retrieval.search_server import SearchServer


class NoSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of an engine whose indexes are all alike."""


class IndexEngine(Struct, frozen=True, kw_only=True):
    """What every engine has.

    name: in manifests and for `cotrail index --engine`. library: the distribution that it runs on, for `created_by`.
    format: the revision of its indexes' format. An index of another format isn't opened and has to be built again.
    """

    name: str
    library: str = "cotrail"
    format: int = 1


class FolderEngine(IndexEngine, frozen=True, kw_only=True):
    """An engine whose indexes are folders.

    settings: what `cotrail index --set` may give to an index, each with a default or required.
    ranking: what decides the results of an index with these settings, beside its paragraphs.
    build: writes the paragraphs, whose ids are distinct, into a new and empty folder.
    open: opens that folder; safe for many threads. Any exception means that the index can't be used.
    """

    settings: type[Struct] = NoSettings
    ranking: Callable[[Any], Ranking]
    build: Callable[[Path, Iterable[Paragraph], Any], None]
    open: Callable[[Path, FolderManifest], Corpus]


class ServerEngine(IndexEngine, frozen=True, kw_only=True):
    """A search server; its name is the distribution that the server says it is.

    index: the settings that all its indexes have; mappings: of their fields, in which a document is a paragraph as
        JSON. ranking: what decides results, beside the paragraphs.
    store: the corpora of a server.
    """

    index: dict[str, Any]
    mappings: dict[str, Any]
    ranking: Ranking
    store: Callable[[SearchServer], CorpusStore]
