"""Filling an index, and putting it in the place of the former one."""

import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.errors import CorpusError, CotrailError
from cotrail.paragraphs import Paragraph
from cotrail.retrieval.elasticsearch.client import BUSY, BusyError, Client, Fault
from cotrail.retrieval.elasticsearch.index import ANALYZER, K1, MAPPINGS, SETTINGS, B, indexes, with_manifest
from cotrail.retrieval.manifest import IndexManifest, Revision, installed
from cotrail.retrieval.stores import Progress

DRAFT = "~draft"
"""Ends the alias of an index that isn't whole; no corpus has such a name."""

BULK_BYTES = 5_000_000
"""How much a request brings at least, but for the last one."""

IN_FLIGHT = 3
"""How many requests may be under way: the server indexes one while others are read, written and sent."""

BULK_SECONDS = 120.0
PATIENCE = 15
"""Attempts, some two minutes: hours of indexing aren't given up for a server that starts anew."""

MERGE_SECONDS = 7200.0


class _Bulk(Struct, frozen=True):
    """Paragraphs to be sent together: their ids, what is sent, and how many there were up to the last of them."""

    ids: list[str]
    body: bytes
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


class _Counted(Struct, frozen=True):
    count: int


def build_index(client: Client, alias: str, paragraphs: Iterable[Paragraph], progress: Progress) -> IndexManifest:
    """Fills a new index, and has the alias lead there once it is whole; the former one is removed then.

    An error or an interruption removes the new one. What a killed build left, the next one removes, and it ends one
    that is still at work.
    """
    created_by = _created_by(client)
    with _draft(client, alias) as index:
        revision = Revision(ANALYZER, K1, B)
        _fill(client, alias + DRAFT, _bulks(paragraphs, revision), progress)
        manifest = IndexManifest(
            revision=str(revision),
            paragraphs=revision.count,
            analyzer=ANALYZER,
            k1=K1,
            b=B,
            created_by=created_by,
        )
        _finish(client, index, manifest)
        _publish(client, alias, index)
    return manifest


def _created_by(client: Client) -> dict[str, str]:
    server = client.ask("GET", "/", _Product).version
    return {"cotrail": installed("cotrail"), server.distribution: server.number, "lucene": server.lucene_version}


@contextmanager
def _draft(client: Client, alias: str) -> Iterator[str]:
    """A new index, known by the draft's alias alone; removed where the block fails before it is published."""
    for former in indexes(client, alias + DRAFT):
        client.ask("DELETE", f"/{former}", msgspec.Raw)
    index = f"{alias.lower()}-{secrets.token_hex(6)}"
    body = {"settings": {"index": SETTINGS}, "mappings": MAPPINGS, "aliases": {alias + DRAFT: {}}}
    try:
        client.ask("PUT", f"/{index}", msgspec.Raw, body)
        yield index
    except BaseException:
        with suppress(CotrailError):
            if index in indexes(client, alias + DRAFT):
                client.ask("DELETE", f"/{index}", msgspec.Raw)
        raise


def _bulks(paragraphs: Iterable[Paragraph], revision: Revision) -> Iterator[_Bulk]:
    """The paragraphs as bulk requests. Documents are called by their number, so that sending twice changes nothing."""
    ids: list[str] = []
    body = bytearray()
    for paragraph in paragraphs:
        revision.add(paragraph)
        ids.append(paragraph.id)
        body += b'{"index":{"_id":"%d"}}\n%b\n' % (revision.count, msgspec.json.encode(paragraph))
        if len(body) >= BULK_BYTES:
            yield _Bulk(ids, bytes(body), revision.count)
            ids, body = [], bytearray()
    if ids:
        yield _Bulk(ids, bytes(body), revision.count)


def _fill(client: Client, draft: str, bulks: Iterable[_Bulk], progress: Progress) -> None:
    # The draft's alias and not the index: one that is removed meanwhile must not come again by being written to.
    path = f"/{draft}/_bulk?require_alias=true&filter_path=errors,items.*.status,items.*.error"
    with ThreadPoolExecutor(IN_FLIGHT, "bulk") as pool:
        sent: deque[Future[int]] = deque()
        for bulk in bulks:
            sent.append(pool.submit(client.insist, _send, client, path, bulk, attempts=PATIENCE))
            if len(sent) == IN_FLIGHT:
                progress(sent.popleft().result())
        for each in sent:
            progress(each.result())


def _send(client: Client, path: str, bulk: _Bulk) -> int:
    """Sends it; returns how many paragraphs there are so far. Raises CorpusError for the first that isn't taken."""
    answer = client.ask("POST", path, _Bulked, bulk.body, seconds=BULK_SECONDS, attempts=1)
    if answer.errors:
        faults = [(each, id_) for item, id_ in zip(answer.items, bulk.ids, strict=True) for each in item.values()]
        for item, id_ in faults:
            if item.error is not None:
                raise _not_taken(item.status, client.said(item.error), id_)
    return bulk.total


def _not_taken(status: int, fault: str, id_: str) -> CotrailError:
    if status in BUSY:
        return BusyError(f"the search server is too busy to take paragraphs ({fault}); index when it has less to do")
    if status == 404:
        return CorpusError("another process began to build this corpus; wait until it is done")
    return CorpusError(f"the search server doesn't take the paragraph {id_!r} ({fault}); mend it or leave it out")


def _finish(client: Client, index: str, manifest: IndexManifest) -> None:
    """Makes the filled index searchable, in one segment, and lets nobody write to it any more."""
    # Where a proxy waits for less long than the merge takes, asking again waits for the same merge.
    merge = f"/{index}/_forcemerge?max_num_segments=1"
    client.ask("POST", merge, msgspec.Raw, seconds=MERGE_SECONDS, attempts=PATIENCE)
    client.ask("POST", f"/{index}/_refresh", msgspec.Raw, seconds=BULK_SECONDS)
    count = client.ask("GET", f"/{index}/_count", _Counted).count
    if count != manifest.paragraphs:
        raise CorpusError(f"of {manifest.paragraphs:,} paragraphs the search server has {count:,}; index them again")
    client.ask("PUT", f"/{index}/_mapping", msgspec.Raw, with_manifest(manifest))
    client.ask("PUT", f"/{index}/_settings", msgspec.Raw, {"index": {"refresh_interval": None, "blocks.write": True}})


def _publish(client: Client, alias: str, index: str) -> None:
    """In one step the alias leads to the index, and the former one is gone."""
    actions: list[dict[str, Any]] = [{"remove_index": {"index": former}} for former in indexes(client, alias)]
    actions.append({"add": {"index": index, "alias": alias}})
    actions.append({"remove": {"index": index, "alias": alias + DRAFT}})
    client.ask("POST", "/_aliases", msgspec.Raw, {"actions": actions})
