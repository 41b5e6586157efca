"""An index that cotrail creates on the server: its settings, its mapping, and its manifest."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct, field

from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient, MissingError
from cotrail.engines.retrieval.manifest import IndexManifest
from cotrail.engines.retrieval.search_engines import ENGINES, server_engine
from cotrail.engines.retrieval.search_server import Fields
from cotrail.errors import CorpusError

# An index on the server that can be searched.

SequenceNumbers = dict[str, dict[str, int]]
"""The highest sequence number of each shard, by the UUIDs of indexes and then the shards; deletions have numbers
too."""

FIELDS = Fields(id="id", title="title", text="text", whole_title="title.whole")
"""The fields of an index that cotrail created."""


class Located(Struct, frozen=True, kw_only=True):
    """An index that can be searched, or several under an alias.

    sequence_numbers: those of the last writes; definition: see `cotrail.engines.retrieval.elasticsearch.existing`; both
        None where cotrail made the index, which is read-only then.
    """

    name: str
    manifest: IndexManifest
    shards: int
    fields: Fields = FIELDS
    sequence_numbers: SequenceNumbers | None = None
    definition: str | None = None


ANALYZER = "Elasticsearch's `english`"
"""Name of the analyzer; an index with another one isn't searched."""

K1, B = 1.2, 0.75
"""BM25's parameters, Lucene's defaults."""

LONGEST_WHOLE = 8_191
"""Characters of the longest title that can be looked up as a whole; each takes four bytes at most."""

SETTINGS: dict[str, Any] = {
    # Shards score by their own word counts, so that scores would depend on how paragraphs are spread.
    "number_of_shards": 1,
    # No search needs to see a draft.
    "refresh_interval": "-1",
    "similarity": {"default": {"type": "BM25", "k1": K1, "b": B}},
}

MAPPINGS: dict[str, Any] = {
    "dynamic": "strict",
    "properties": {
        "id": {"type": "keyword"},
        "title": {
            "type": "text",
            "analyzer": "english",
            "index_options": "freqs",
            # Whole titles are only compared for equality, which needs no doc values. Lucene takes no term of more than
            # 32,766 bytes: longer titles are found by their words alone.
            "fields": {"whole": {"type": "keyword", "doc_values": False, "ignore_above": LONGEST_WHOLE}},
        },
        "text": {"type": "text", "analyzer": "english", "index_options": "freqs"},
    },
}
"""A document is a paragraph as JSON. `title.whole` is for looking up titles, and ids order equal scores."""


class _Meta(Struct, frozen=True):
    cotrail: IndexManifest | None = None


class _Mappings(Struct, frozen=True):
    meta: _Meta = field(name="_meta", default=_Meta())


class _Settings(Struct, frozen=True):
    number_of_shards: int | str = 1
    creation_date: int | str | None = None


class _AllSettings(Struct, frozen=True):
    index: _Settings = _Settings()


class Index(Struct, frozen=True):
    """A server's description of an index."""

    aliases: dict[str, Any] = {}
    mappings: _Mappings = _Mappings()
    settings: _AllSettings = _AllSettings()

    @property
    def manifest(self) -> IndexManifest | None:
        """The manifest, None until the index is complete."""
        return self.mappings.meta.cotrail


def indexes(client: ElasticsearchClient, pattern: str) -> dict[str, Index]:
    """The indexes that match a name or alias, by name."""
    try:
        return client.ask(lambda api: api.indices.get(index=pattern), dict[str, Index])
    except MissingError:
        return {}


def remove(client: ElasticsearchClient, index: str) -> None:
    """Deletes an index by its name; raises MissingError where there is none."""
    client.ask(lambda api: api.indices.delete(index=index))


class _Size(Struct, frozen=True):
    size_in_bytes: int = 0


class _Store(Struct, frozen=True):
    store: _Size = _Size()


class _Total(Struct, frozen=True):
    primaries: _Store = _Store()


class _Stats(Struct, frozen=True):
    all: _Total = field(name="_all", default=_Total())


def extent(client: ElasticsearchClient, name: str) -> tuple[int, datetime | None]:
    """The bytes of the primary shards of an index, or of those behind an alias, and when the first was created."""
    stats = client.ask(lambda api: api.indices.stats(index=name, metric="store"), _Stats)
    created = [index.settings.index.creation_date for index in indexes(client, name).values()]
    moments = [datetime.fromtimestamp(int(each) / 1000, UTC) for each in created if each is not None]
    return stats.all.primaries.store.size_in_bytes, min(moments, default=None)


def locate(client: ElasticsearchClient, alias: str) -> Located | None:
    """The index behind an alias, None where there is no such alias; raises CorpusError where it can't be searched."""
    there = indexes(client, alias)
    if not there:
        return None
    name, index = next(iter(there.items()))
    manifest = index.manifest
    if len(there) > 1 or manifest is None or not _is_searchable(manifest):
        raise CorpusError(
            f"the index {alias} can't be used: another version of cotrail made it, or something else, "
            "or two at once; build it again with `cotrail index`"
        )
    return Located(name=name, manifest=manifest, shards=int(index.settings.index.number_of_shards))


def _is_searchable(manifest: IndexManifest) -> bool:
    if manifest.engine not in ENGINES:
        return False
    engine = server_engine(manifest.engine)
    return (manifest.analyzer, manifest.format) == (engine.ranking.analyzer, engine.format)


def with_manifest(manifest: IndexManifest) -> dict[str, Any]:
    """The metadata of a mapping that holds a manifest."""
    return {"cotrail": msgspec.to_builtins(manifest)}
