"""An index that cotrail creates on the server: its settings, its mapping, and its manifest."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct, field

from cotrail.engines.retrieval.elasticsearch.client import BusyError, ElasticsearchClient, MissingError
from cotrail.engines.retrieval.engine import ENGINES, server_engine
from cotrail.engines.retrieval.manifest import EMBEDDED_BY, IndexManifest
from cotrail.engines.retrieval.search_server import ExistingIndex, Fields
from cotrail.errors import CorpusError

# An index on the server that can be searched.

SequenceNumbers = dict[str, dict[str, int]]
"""The highest sequence number of each shard, by the UUIDs of indexes and then the shards; deletions have numbers
too."""

FIELDS = Fields(id="id", title="title", text="text", whole_title="title.whole")
"""The fields of an index that cotrail created."""


class Located(Struct, frozen=True, kw_only=True):
    """An index that can be searched, or several under an alias.

    sequence_numbers: those of the last writes; definition: see `cotrail.engines.retrieval.elasticsearch.index`; both
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
    words = manifest.analyzer.partition(EMBEDDED_BY["dense"])[0]
    return (words, manifest.format) == (engine.ranking.analyzer, engine.format)


# Detection of writes to an index, by the sequence numbers that a server gives to all writes to a shard.

RESPONSE_FIELDS = "indices.*.uuid,indices.*.shards.*.routing.primary,indices.*.shards.*.seq_no.max_seq_no"


class _Routing(Struct, frozen=True):
    primary: bool


class _Highest(Struct, frozen=True):
    max_seq_no: int


class _Copy(Struct, frozen=True):
    routing: _Routing
    seq_no: _Highest = _Highest(-1)


class _IndexStatistics(Struct, frozen=True):
    uuid: str
    shards: dict[str, list[_Copy]] = {}


class _ExistingStats(Struct, frozen=True):
    indices: dict[str, _IndexStatistics] = {}


def sequence_numbers(client: ElasticsearchClient, name: str, shards: int) -> SequenceNumbers:
    """The sequence numbers of an index, or of an alias's indexes, with that many shards.

    Raises BusyError where a shard has had no primary copy for long.
    """
    return client.insist(_read, client, name, shards)


def _read(client: ElasticsearchClient, name: str, shards: int) -> SequenceNumbers:
    stats = client.ask(
        lambda api: api.indices.stats(index=name, metric="docs", level="shards", filter_path=RESPONSE_FIELDS),
        _ExistingStats,
        attempts=1,
    )
    numbers = {index.uuid: dict(_highest(index)) for index in stats.indices.values()}
    if sum(map(len, numbers.values())) < shards:
        raise BusyError(f"a part of the index {name} isn't there now; wait until the search server has recovered")
    return numbers


def _highest(index: _IndexStatistics) -> Iterator[tuple[str, int]]:
    for shard, copies in index.shards.items():
        for copy in copies:
            # Replicas may lag behind; the primary copy has every write.
            if copy.routing.primary:
                yield shard, copy.seq_no.max_seq_no


MOST_RULES = 10_000
"""The most rules of a synonym set, as servers have it."""


class _Index(Struct, frozen=True):
    aliases: dict[str, dict[str, Any]] = {}
    mappings: dict[str, Any] = {}
    settings: dict[str, dict[str, Any]] = {}


class _Field(Struct, frozen=True):
    mapping: dict[str, dict[str, Any]] = {}


class _Fields(Struct, frozen=True):
    mappings: dict[str, _Field] = {}


class Counted(Struct, frozen=True):
    """How many documents an index has."""

    count: int


def locate_existing(client: ElasticsearchClient, existing: ExistingIndex) -> Located | None:
    """The index, or the alias's indexes; None where there are none.

    Raises CorpusError for fields that can't be searched.
    """
    name = existing.index
    try:
        indexes = _indexes(client, name)
        _check_fields(client, existing)
        _check_objects(existing, indexes)
        shards = sum(int(index.settings["index"]["number_of_shards"]) for index in indexes.values())
        # Before the count: a write in between then shows as a change of the index.
        numbers = sequence_numbers(client, name, shards)
        definition = _definition(client, name, indexes)
        count = client.ask(lambda api: api.count(index=name), Counted).count
    except MissingError:
        return None
    manifest = IndexManifest(
        revision=hashlib.sha256(msgspec.json.encode([existing, definition, numbers], order="sorted")).hexdigest(),
        paragraphs=count,
        analyzer=f"that of the index {name}",
        created_by={},
    )
    return Located(
        name=name, manifest=manifest, shards=shards, fields=existing, sequence_numbers=numbers, definition=definition
    )


def definition_of(client: ElasticsearchClient, name: str) -> str:
    """The digest of what decides a search's result apart from the documents, as it is now; raises MissingError."""
    return _definition(client, name, _indexes(client, name))


def _indexes(client: ElasticsearchClient, name: str) -> dict[str, _Index]:
    return client.ask(lambda api: api.indices.get(index=name), dict[str, _Index])


def _definition(client: ElasticsearchClient, name: str, indexes: Mapping[str, _Index]) -> str:
    """Of the indexes under an alias: which they are, what the alias filters, fields, analysis, synonyms, ranking."""
    identity = {
        index.settings["index"]["uuid"]: [
            index.aliases.get(name),
            {key: value for key, value in index.mappings.items() if key != "_meta"},
            {each: index.settings["index"].get(each) for each in ("analysis", "similarity", "search")},
        ]
        for index in indexes.values()
    }
    analysis = [index.settings["index"].get("analysis") for index in indexes.values()]
    synonyms = {each: _rules(client, each) for each in sorted(set(_synonym_sets(analysis)))}
    return hashlib.sha256(msgspec.json.encode([identity, synonyms], order="sorted")).hexdigest()


def _synonym_sets(value: object) -> Iterator[str]:
    """The names of the sets that an analysis takes its synonyms from: they are changed elsewhere."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "synonyms_set":
                yield from [inner] if isinstance(inner, str) else inner
            else:
                yield from _synonym_sets(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _synonym_sets(inner)


def _rules(client: ElasticsearchClient, name: str) -> object:
    return client.ask(lambda api: api.synonyms.get_synonym(id=name, size=MOST_RULES), dict[str, Any])


def _check_objects(existing: ExistingIndex, indexes: Mapping[str, _Index]) -> None:
    """Refuse fields that a search finds nothing in: those of nested objects, and those that aren't indexed."""
    names = [existing.title, existing.text, *(each for each in (existing.id, existing.whole_title) if each)]
    for index, there in indexes.items():
        for name in names:
            if what := _hidden(there.mappings, name):
                raise CorpusError(
                    f"nothing would be found in the field {name!r} of the index {index}: {what}; name another field in "
                    "search.toml, or index documents in which it is a plain one"
                )


def _hidden(mapping: Mapping[str, Any], name: str) -> str:
    """Why a search doesn't see a field; empty where it does."""
    for part in name.split("."):
        mapping = {**mapping.get("properties", {}), **mapping.get("fields", {})}.get(part, {})
        if mapping.get("type") == "nested":
            return "it is within nested objects, which plain searches don't see"
        if mapping.get("index") is False or mapping.get("enabled") is False:
            return "it is stored and not indexed"
    return ""


def _check_fields(client: ElasticsearchClient, existing: ExistingIndex) -> None:
    """Checks the fields by their mappings; `_field_caps` takes its parameters differently in older servers."""
    keywords = [name for name in (existing.id, existing.whole_title) if name and name != "_id"]
    expectations = [(existing.title, "text"), (existing.text, "text"), *((name, "keyword") for name in keywords)]
    for index, there in client.ask(
        lambda api: api.indices.get_field_mapping(index=existing.index, fields=[name for name, _ in expectations]),
        dict[str, _Fields],
    ).items():
        for name, type_ in expectations:
            field = there.mappings.get(name, _Field())
            types = {str(each.get("type")) for each in field.mapping.values()}
            if types != {type_}:
                raise CorpusError(
                    f"the index {index} has no field {name!r} of the type {type_} "
                    f"({', '.join(types) or 'nothing'} is there); correct search.toml"
                )
