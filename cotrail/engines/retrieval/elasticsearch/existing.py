"""An existing index that others fill, searched as a corpus: it is only read, and must not change during a run."""

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient, MissingError
from cotrail.engines.retrieval.elasticsearch.located import Located
from cotrail.engines.retrieval.elasticsearch.sequence_numbers import sequence_numbers
from cotrail.engines.retrieval.existing_index import ExistingIndex
from cotrail.engines.retrieval.index_manifest import IndexManifest
from cotrail.errors import CorpusError


class _Index(Struct, frozen=True):
    mappings: dict[str, Any] = {}
    settings: dict[str, dict[str, Any]] = {}


class _Field(Struct, frozen=True):
    mapping: dict[str, dict[str, Any]] = {}


class _Fields(Struct, frozen=True):
    mappings: dict[str, _Field] = {}


class _Counted(Struct, frozen=True):
    count: int


def locate_existing(client: ElasticsearchClient, existing: ExistingIndex) -> Located | None:
    """The index, or the alias's indexes; None where there are none.

    Raises CorpusError for fields that can't be searched.
    """
    name = existing.index
    try:
        indexes = client.ask(lambda api: api.indices.get(index=name), dict[str, _Index])
        _check_fields(client, existing)
        shards = sum(int(index.settings["index"]["number_of_shards"]) for index in indexes.values())
        # Before the count: a write in between then shows as a change of the index.
        numbers = sequence_numbers(client, name, shards)
        count = client.ask(lambda api: api.count(index=name), _Counted).count
    except MissingError:
        return None
    manifest = IndexManifest(
        revision=_revision(existing, indexes, numbers),
        paragraphs=count,
        analyzer=f"that of the index {name}",
        created_by={},
    )
    return Located(name=name, manifest=manifest, shards=shards, fields=existing, sequence_numbers=numbers)


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


def _revision(existing: ExistingIndex, indexes: dict[str, _Index], numbers: object) -> str:
    """The digest of what decides a search's result: fields, analysis, ranking, and everything that was written."""
    identity = {
        index.settings["index"]["uuid"]: [
            index.mappings.get("properties"),
            {each: index.settings["index"].get(each) for each in ("analysis", "similarity")},
        ]
        for index in indexes.values()
    }
    return hashlib.sha256(msgspec.json.encode([existing, identity, numbers], order="sorted")).hexdigest()
