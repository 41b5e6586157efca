"""Detection of writes to an index, by the sequence numbers that a server gives to all writes to a shard."""

from collections.abc import Iterator

from msgspec import Struct

from cotrail.engines.retrieval.elasticsearch.client import BusyError, ElasticsearchClient
from cotrail.engines.retrieval.elasticsearch.located import SequenceNumbers

RESPONSE_FIELDS = "indices.*.uuid,indices.*.shards.*.routing.primary,indices.*.shards.*.seq_no.max_seq_no"


class _Routing(Struct, frozen=True):
    primary: bool


class _Highest(Struct, frozen=True):
    max_seq_no: int


class _Copy(Struct, frozen=True):
    routing: _Routing
    seq_no: _Highest = _Highest(-1)


class _Index(Struct, frozen=True):
    uuid: str
    shards: dict[str, list[_Copy]] = {}


class _Stats(Struct, frozen=True):
    indices: dict[str, _Index] = {}


def sequence_numbers(client: ElasticsearchClient, name: str, shards: int) -> SequenceNumbers:
    """The sequence numbers of an index, or of an alias's indexes, with that many shards.

    Raises BusyError where a shard has had no primary copy for long.
    """
    return client.insist(_read, client, name, shards)


def _read(client: ElasticsearchClient, name: str, shards: int) -> SequenceNumbers:
    stats = client.ask(
        lambda api: api.indices.stats(index=name, metric="docs", level="shards", filter_path=RESPONSE_FIELDS),
        _Stats,
        attempts=1,
    )
    numbers = {index.uuid: dict(_highest(index)) for index in stats.indices.values()}
    if sum(map(len, numbers.values())) < shards:
        raise BusyError(f"a part of the index {name} isn't there now; wait until the search server has recovered")
    return numbers


def _highest(index: _Index) -> Iterator[tuple[str, int]]:
    for shard, copies in index.shards.items():
        for copy in copies:
            # Replicas may lag behind; the primary copy has every write.
            if copy.routing.primary:
                yield shard, copy.seq_no.max_seq_no
