"""An index of ours as it lies in the server: its settings, its mapping, and what it says of itself."""

from typing import Any

import msgspec
from msgspec import Struct, field

from cotrail.engines.retrieval.elasticsearch.client import Client, MissingError
from cotrail.engines.retrieval.elasticsearch.located import Located
from cotrail.engines.retrieval.manifest import IndexManifest
from cotrail.errors import CorpusError

ANALYZER = "Elasticsearch's `english`"
"""Names the words; an index with others isn't searched."""

K1, B = 1.2, 0.75
"""BM25's parameters, Lucene's defaults."""

SETTINGS: dict[str, Any] = {
    "number_of_shards": 1,
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
            "fields": {"whole": {"type": "keyword", "doc_values": False}},
        },
        "text": {"type": "text", "analyzer": "english", "index_options": "freqs"},
    },
}
"""A document is a paragraph as JSON. `title.whole` is for looking titles up, and the ids order equal scores."""


class _Meta(Struct, frozen=True):
    cotrail: IndexManifest | None = None


class _Mappings(Struct, frozen=True):
    meta: _Meta = field(name="_meta", default=_Meta())


class _Settings(Struct, frozen=True):
    number_of_shards: int | str = 1


class _AllSettings(Struct, frozen=True):
    index: _Settings = _Settings()


class Index(Struct, frozen=True):
    """What a server says of an index."""

    aliases: dict[str, Any] = {}
    mappings: _Mappings = _Mappings()
    settings: _AllSettings = _AllSettings()

    @property
    def manifest(self) -> IndexManifest | None:
        """None until it is whole."""
        return self.mappings.meta.cotrail


def indexes(client: Client, pattern: str) -> dict[str, Index]:
    """The indexes by name that have such a name or alias."""
    try:
        return client.ask(lambda api: api.indices.get(index=pattern), dict[str, Index])
    except MissingError:
        return {}


def remove(client: Client, index: str) -> None:
    """Removes an index by its name; MissingError where it isn't there."""
    client.ask(lambda api: api.indices.delete(index=index))


def locate(client: Client, alias: str) -> Located | None:
    """The index that an alias leads to, None where there is no such alias; CorpusError where it can't be searched."""
    there = indexes(client, alias)
    if not there:
        return None
    name, index = next(iter(there.items()))
    if len(there) > 1 or index.manifest is None or index.manifest.analyzer != ANALYZER:
        raise CorpusError(
            f"the index {alias} can't be used: another version of cotrail made it, or something else, "
            "or two at once; build it again with `cotrail index`"
        )
    return Located(name=name, manifest=index.manifest, shards=int(index.settings.index.number_of_shards))


def with_manifest(manifest: IndexManifest) -> dict[str, Any]:
    """A manifest as an index's mapping keeps it."""
    return {"cotrail": msgspec.to_builtins(manifest)}
