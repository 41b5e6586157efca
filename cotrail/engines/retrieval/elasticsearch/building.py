"""Building an index: it is filled next to the former one, which it then replaces.

Bulk requests are sent by threads of our own. Of the official client's helpers, `streaming_bulk` sends one at a time,
and `parallel_bulk` reports a rejected document only after it has read and sent all others.
"""

import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import msgspec
from msgspec import Struct, structs

from cotrail.core.questions import FiledParagraph, Paragraph
from cotrail.engines.retrieval.elasticsearch.client import BUSY_STATUSES, BusyError, ElasticsearchClient, Fault
from cotrail.engines.retrieval.elasticsearch.index import Counted, indexes, remove
from cotrail.engines.retrieval.engine import CountCallback, ServerEngine, server_engine
from cotrail.engines.retrieval.manifest import IndexManifest, Revision, installed
from cotrail.engines.retrieval.search_server import FieldKinds, check_fields
from cotrail.errors import CorpusError, CotrailError, InputError

DRAFT = "~draft"
"""Suffix of the alias of an incomplete index; no corpus has such a name."""

BULK_BYTES = 5_000_000
"""The least size of a bulk request, except for the last one."""

MOST_REQUESTS = 3
"""The most bulk requests under way: the server indexes one while others are read, serialized and sent."""

BULK_SECONDS = 120.0
BULK_ATTEMPTS = 15
"""Attempts over about two minutes: a restart of the server must not cost hours of indexing."""

RESPONSE_FIELDS = "errors,items.*.status,items.*.error"
"""FieldKinds of the response to a bulk request."""

MERGE_SECONDS = 7200.0

NO_COPIES: dict[str, Any] = {"number_of_replicas": 0, "auto_expand_replicas": False}
"""Replication is off while the index is filled: copying the finished index is cheaper than indexing it twice."""


class _Bulk(Struct, frozen=True):
    """Paragraphs to be sent together: ids, lines to send, and the number of paragraphs up to the last of them."""

    ids: list[str]
    operations: list[Any]
    total: int


class _Item(Struct, frozen=True):
    status: int
    error: Fault | None = None


class _Bulked(Struct, frozen=True):
    errors: bool
    items: list[dict[str, _Item]] = []


class _Version(Struct, frozen=True):
    number: str
    lucene_version: str
    distribution: str = "elasticsearch"


class _Product(Struct, frozen=True):
    version: _Version


class Documents(Struct, frozen=True, kw_only=True):
    """How paragraphs become documents of an index.

    engine: with the fields that documents have, and what decides results. settings: what the manifest says of them.
    of: each paragraph with its document, as JSON.
    """

    engine: ServerEngine
    settings: Mapping[str, Any] = {}
    of: Callable[[Iterable[Paragraph]], Iterator[tuple[Paragraph, bytes]]]


def plain(engine: ServerEngine, fields: FieldKinds | None = None) -> AbstractContextManager[Documents]:
    """Documents that are paragraphs, with the fields by which they can be filtered."""
    return nullcontext(
        Documents(
            engine=filed(engine, fields or {}),
            settings={"fields": fields} if fields else {},
            of=lambda paragraphs: ((each, msgspec.json.encode(document_of(each))) for each in paragraphs),
        )
    )


_KINDS = {"word": {"type": "keyword"}, "number": {"type": "double"}}


def filed(engine: ServerEngine, fields: FieldKinds) -> ServerEngine:
    """The engine, whose documents have these fields too; raises InputError for names that they can't have."""
    check_fields(fields)
    properties = engine.mappings["properties"] | {name: _KINDS[kind] for name, kind in fields.items()}
    return structs.replace(engine, mappings=engine.mappings | {"properties": properties})


def document_of(paragraph: Paragraph) -> dict[str, Any]:
    """The paragraph as a document."""
    fields = paragraph.fields if isinstance(paragraph, FiledParagraph) else {}
    return {"id": paragraph.id, "title": paragraph.title, "text": paragraph.text, **fields}


def build_index(
    client: ElasticsearchClient,
    alias: str,
    settings: dict[str, Any],
    paragraphs: Iterable[Paragraph],
    progress: CountCallback,
    expected_engine: str | None = None,
    documents_of: Callable[[ServerEngine], AbstractContextManager[Documents]] = plain,
) -> IndexManifest:
    """Fills a new index and points the alias to it once it is complete; the former one is then deleted.

    expected_engine: that the server should be; raises InputError where it is another one.
    documents_of: what the server's documents are made by.
    settings: the index's, in addition to those that it always has. Replicas are made of the complete index.
    An error or an interruption deletes the new index. The next build deletes what a killed build left, and takes over
    from one that is still running.
    """
    server = client.ask(lambda api: api.info(), _Product).version
    engine = server_engine(server.distribution)
    if expected_engine not in (None, engine.name):
        raise InputError(f"the search server is {engine.name}, not {expected_engine}; name that or none")
    with documents_of(engine) as made, _draft(client, alias, made.engine, settings | NO_COPIES) as index:
        ranking, revision = made.engine.ranking, Revision(made.engine.ranking, made.settings)
        _fill(client, alias + DRAFT, _bulks(made.of(revision.counted(paragraphs))), progress)
        manifest = IndexManifest(
            revision=str(revision),
            paragraphs=revision.count,
            created_by={"cotrail": installed("cotrail"), engine.name: server.number, "lucene": server.lucene_version},
            engine=engine.name,
            format=engine.format,
            settings=dict(made.settings),
            **structs.asdict(ranking),
        )
        _finish(client, index, manifest, {name: settings.get(name, none) for name, none in NO_COPIES.items()})
        _publish(client, alias, index)
    return manifest


@contextmanager
def _draft(client: ElasticsearchClient, alias: str, engine: ServerEngine, settings: dict[str, Any]) -> Iterator[str]:
    """A new index, known by the draft's alias alone; deleted if the block fails before the index is published."""
    draft = alias + DRAFT
    for former in indexes(client, draft):
        remove(client, former)
    index = f"{alias.lower()}-{secrets.token_hex(6)}"
    try:
        client.ask(
            lambda api: api.indices.create(
                index=index, settings={"index": engine.index | settings}, mappings=engine.mappings, aliases={draft: {}}
            )
        )
        yield index
    except BaseException:
        with suppress(CotrailError):
            # Only while it is a draft: after `_publish` it is the corpus, even if the response was lost.
            if index in indexes(client, draft):
                remove(client, index)
        raise


def _bulks(documents: Iterable[tuple[Paragraph, bytes]]) -> Iterator[_Bulk]:
    """The paragraphs as bulk requests; documents are numbered, so that sending them twice is idempotent."""
    ids: list[str] = []
    operations: list[Any] = []
    size = number = 0
    for number, (paragraph, document) in enumerate(documents, start=1):
        ids.append(paragraph.id)
        operations += (b'{"index":{"_id":"%d"}}' % number, document)
        size += len(document)
        if size >= BULK_BYTES:
            yield _Bulk(ids, operations, number)
            ids, operations, size = [], [], 0
    if ids:
        yield _Bulk(ids, operations, number)


def _fill(client: ElasticsearchClient, draft: str, bulks: Iterable[_Bulk], progress: CountCallback) -> None:
    with ThreadPoolExecutor(MOST_REQUESTS, "bulk") as pool:
        sent: deque[Future[int]] = deque()
        for bulk in bulks:
            sent.append(pool.submit(client.insist, _send, client, draft, bulk, attempts=BULK_ATTEMPTS))
            # Waiting for the oldest bounds the memory of bulks and keeps progress in order.
            if len(sent) == MOST_REQUESTS:
                progress(sent.popleft().result())
        for each in sent:
            progress(each.result())


def _send(client: ElasticsearchClient, draft: str, bulk: _Bulk) -> int:
    """Sends a bulk; returns the number of paragraphs so far. Raises CorpusError for the first that is rejected."""
    answer = client.ask(
        # The draft's alias instead of the index: writing to an index that was deleted meanwhile would create it again.
        lambda api: api.bulk(index=draft, operations=bulk.operations, require_alias=True, filter_path=RESPONSE_FIELDS),
        _Bulked,
        seconds=BULK_SECONDS,
        attempts=1,
    )
    if answer.errors:
        faults = [(each, id_) for item, id_ in zip(answer.items, bulk.ids, strict=True) for each in item.values()]
        for item, id_ in faults:
            if item.error is not None:
                raise _not_taken(item.status, client.said(item.error), id_)
    return bulk.total


def _not_taken(status: int, fault: str, id_: str) -> CotrailError:
    if status in BUSY_STATUSES:
        return BusyError(f"the search server is too busy to take paragraphs ({fault}); index when it has less to do")
    if status == 404:
        return CorpusError("another process began to build this corpus; wait until it is done")
    return CorpusError(f"the search server rejects the paragraph {id_!r} ({fault}); correct it or leave it out")


def _finish(client: ElasticsearchClient, index: str, manifest: IndexManifest, copies: dict[str, Any]) -> None:
    """Makes the filled index searchable, in one segment per shard, and read-only."""
    # If a proxy times out before the merge is done, asking again waits for the same merge.
    client.ask(
        lambda api: api.indices.forcemerge(index=index, max_num_segments=1),
        seconds=MERGE_SECONDS,
        attempts=BULK_ATTEMPTS,
    )
    client.ask(lambda api: api.indices.refresh(index=index), seconds=BULK_SECONDS)
    count = client.ask(lambda api: api.count(index=index), Counted).count
    if count != manifest.paragraphs:
        raise CorpusError(f"of {manifest.paragraphs:,} paragraphs the search server has {count:,}; index them again")
    client.ask(lambda api: api.indices.put_mapping(index=index, meta={"cotrail": msgspec.to_builtins(manifest)}))
    # None restores the server's default.
    whole = copies | {"refresh_interval": None, "blocks.write": True}
    client.ask(lambda api: api.indices.put_settings(index=index, settings={"index": whole}))


def _publish(client: ElasticsearchClient, alias: str, index: str) -> None:
    """Points the alias to the index and deletes the former one, in a single atomic step."""
    # One request, which the server applies atomically: searches see either the former index or this one.
    actions: list[dict[str, Any]] = [{"remove_index": {"index": former}} for former in indexes(client, alias)]
    actions.append({"add": {"index": index, "alias": alias}})
    actions.append({"remove": {"index": index, "alias": alias + DRAFT}})
    client.ask(lambda api: api.indices.update_aliases(actions=actions))
