"""Search engines over the same paragraphs: cost of building an index, and queries per second.

`python -m benchmarks.retrieval [--sizes 10000,200000,2000000] [--corpus FILE]... [--output FILE]` compares tantivy,
bm25s and search servers in one run, over synthetic abstracts (`benchmarks.zipfian`) or over the paragraphs of corpus
files. The server is that of COTRAIL_SEARCH_URL; without it, Elasticsearch and OpenSearch are started from a folder
(`benchmarks.search_servers`); without that, osmem-server is used, which is made for tests. Every build and every search
is a process of its own. The files go to a temporary folder below TMPDIR, about 6 GB for 5,000,000 paragraphs.
"""

import json
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Annotated, Any, Protocol

import bm25s  # type: ignore[import-untyped]
import msgspec
import typer
from bm25s.tokenization import Tokenized  # type: ignore[import-untyped]
from msgspec import Struct
from osmem_server import OsmemServer  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from benchmarks.machine import command, describe, versions
from benchmarks.search_servers import FOLDER, HEAP, available, running, version
from benchmarks.searching import RETRIEVED, Search, searched, together, warm_up
from benchmarks.stages import ReportProgress, StageError, bytes_of, measured, memory, screen
from benchmarks.zipfian import abstracts
from cotrail.configuration.settings import Settings
from cotrail.core.ports.retriever import SearchRequest
from cotrail.core.questions import Paragraph
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient
from cotrail.engines.retrieval.elasticsearch.index import indexes, remove
from cotrail.engines.retrieval.elasticsearch.store import ElasticsearchStore
from cotrail.engines.retrieval.engine import NewIndex
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.engines.retrieval.stores import build_index, open_index
from cotrail.engines.retrieval.tantivy import english, plain

SEED = 1
QUERIES = 2_000
PROCESSES = (1, 2, 4, 8)
NAMED = "named search server"
OSMEM = "osmem-server"
MEASURED = ("cotrail", "tantivy", "bm25s", "osmem-server", "elastic-transport", "numpy")

MOST_IN_OSMEM = 200_000
"""Limit for osmem, which keeps everything in memory and scores every paragraph that has one of a query's words."""

Shown = Callable[[str, int], ReportProgress]


class ParagraphFile(Struct, frozen=True):
    """The paragraphs of a JSON Lines file."""

    path: Path
    count: int

    def __iter__(self) -> Iterator[Paragraph]:
        """Iterate over the paragraphs."""
        decoder = msgspec.json.Decoder(Paragraph)
        with self.path.open("rb") as lines:
            yield from map(decoder.decode, lines)

    def queries(self) -> list[str]:
        """First sentences of paragraphs spread over the file."""
        every = max(1, self.count // QUERIES)
        return [paragraph.text.split(". ")[0] for paragraph in islice(self, 0, QUERIES * every, every)]


class SearchEngine(Protocol):
    """A search engine to measure."""

    def build(self, paragraphs: Iterable[Paragraph], report: ReportProgress) -> int:
        """Index the paragraphs; returns the bytes of the index."""

    def open(self) -> Search:
        """Open the index for searching."""


class Tantivy(Struct, frozen=True):
    """cotrail's own index, mapped into memory."""

    folder: Path

    def build(self, paragraphs: Iterable[Paragraph], report: ReportProgress) -> int:
        """Index as `cotrail index` does."""
        build_index(paragraphs, self.folder, report)
        return bytes_of(self.folder)

    def open(self) -> Search:
        """Search title and text."""
        retriever = open_index(self.folder)
        return lambda query: retriever.search(SearchRequest(query=query, count=RETRIEVED))


class BM25S(Struct, frozen=True):
    """bm25s over title and text in one field, with tantivy's tokens; it doesn't store the paragraphs."""

    folder: Path

    def build(self, paragraphs: Iterable[Paragraph], report: ReportProgress) -> int:
        """Index with all tokens in memory at once, as numbers."""
        analyzer = english()
        vocabulary: dict[str, int] = {}
        texts = []
        for count, paragraph in enumerate(paragraphs, start=1):
            words = analyzer.analyze(plain(f"{paragraph.title} {paragraph.text}"))
            texts.append([vocabulary.setdefault(word, len(vocabulary)) for word in words])
            if count % 1_000 == 0:
                report(count)
        index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        index.index(Tokenized(ids=texts, vocab=vocabulary), show_progress=False)
        index.save(self.folder, show_progress=False)
        return bytes_of(self.folder)

    def open(self) -> Search:
        """Open the index mapped into memory."""
        index, analyzer = bm25s.BM25.load(self.folder, mmap=True), english()
        return lambda query: index.retrieve([analyzer.analyze(plain(query))], k=RETRIEVED, show_progress=False)


IN_FOLDERS: dict[str, Callable[[Path], SearchEngine]] = {"tantivy": Tantivy, "bm25s": BM25S}
"""Engines that need no server."""


class Elasticsearch(Struct, frozen=True):
    """cotrail's index in a search server."""

    server: SearchServer

    def build(self, paragraphs: Iterable[Paragraph], report: ReportProgress) -> int:
        """Index as `cotrail index` does; the bytes are those that the server reports."""
        ElasticsearchStore(self.server).build("corpus", paragraphs, NewIndex(progress=report))
        index = f"{self.server.prefix}corpus"
        stats = ElasticsearchClient(self.server).ask(
            lambda api: api.indices.stats(index=index, metric="store"), dict[str, Any]
        )
        return int(stats["_all"]["total"]["store"]["size_in_bytes"])

    def open(self) -> Search:
        """Search with one request per query."""
        corpus = ElasticsearchStore(self.server).open("corpus")
        return lambda query: corpus.search(SearchRequest(query=query, count=RETRIEVED))


def main(
    sizes: Annotated[str, typer.Option(help="How many made-up paragraphs, with commas.")] = "10000,200000,2000000",
    corpus: Annotated[list[Path] | None, typer.Option(help="Take this file's paragraphs instead.")] = None,
    seconds: Annotated[float, typer.Option(help="How long each process searches.")] = 3,
    servers: Annotated[Path, typer.Option(help="Where Elasticsearch and OpenSearch can be started.")] = FOLDER,
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Measure each engine with each size in turn; print sizes, times and queries per second."""
    rows: list[dict[str, Any]] = []
    for size in [0] if corpus else map(int, sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="cotrail-benchmark-") as folder, screen() as shown:
            path = Path(folder) / "paragraphs.jsonl"
            (written,) = measured([(_write, (path, size, corpus))], shown("writing paragraphs", size))
            paragraphs = ParagraphFile(path, written["paragraphs"])
            for engine in (*IN_FOLDERS, *_servers(servers)):
                opening = _opened(engine, Path(folder), paragraphs.count, servers)
                rows.append(_row(engine, opening, paragraphs, seconds, shown))
    about = {"command": command("benchmarks.retrieval"), "machine": describe(), "versions": versions(*MEASURED)}
    report = {"measured": rows, **about}
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(rows)


def _write(path: Path, size: int, corpus: list[Path] | None, report: ReportProgress) -> dict[str, Any]:
    count = 0
    with path.open("wb") as file:
        for count, paragraph in enumerate(read_corpus(corpus) if corpus else made_up(size), start=1):
            file.write(msgspec.json.encode(paragraph) + b"\n")
            if count % 1_000 == 0:
                report(count)
    return {"paragraphs": count}


def made_up(size: int) -> Iterator[Paragraph]:
    """Synthetic paragraphs, the same each time."""
    for number, abstract in enumerate(abstracts(size, SEED)):
        yield Paragraph(id=str(number), title=abstract.title, text="".join(abstract.sentences))


class OpenedEngine(Struct, frozen=True):
    """An engine ready to be measured; server: its process id if it runs on this machine."""

    engine: SearchEngine
    name: str
    server: int | None = None


class SkippedError(Exception):
    """A measurement is skipped; the message says why."""


def _row(
    engine: str, opening: AbstractContextManager[OpenedEngine], paragraphs: ParagraphFile, seconds: float, shown: Shown
) -> dict[str, Any]:
    row = {"engine": engine, "paragraphs": paragraphs.count}
    try:
        with opening as opened:
            return row | _measured(opened, paragraphs, seconds, shown)
    except SkippedError as reason:
        return row | {"skipped": str(reason)}
    except StageError as error:
        return row | {"skipped": f"it was tried, and its process {error}"}


def _measured(opened: OpenedEngine, paragraphs: ParagraphFile, seconds: float, shown: Shown) -> dict[str, Any]:
    title = f"{opened.name}, {paragraphs.count:,} paragraphs"
    (built,) = measured([(_build, (opened.engine, paragraphs))], shown(f"{title}: indexing", paragraphs.count))
    asked = paragraphs.queries()
    rates = {}
    for count in PROCESSES:
        at_once = get_context("spawn").Barrier(count)
        # Each process begins elsewhere in the queries, so that none profits from what another has just cached.
        turns = [asked[len(asked) * i // count :] + asked[: len(asked) * i // count] for i in range(count)]
        stages = [(_search, (opened.engine, turn, seconds, at_once)) for turn in turns]
        rates[str(count)] = together(measured(stages, shown(f"{title}: {count} at once", len(asked))))
    server = {} if opened.server is None else {"server": _server_memory(opened.server)}
    return {"name": opened.name, "built": built, "searched": rates, **server}


def _server_memory(process: int) -> dict[str, int]:
    """A server's own memory in the end, and its peak, which includes the mapped files of the index."""
    return {"own_mib": memory("RssAnon", process), "peak_mib": memory("VmHWM", process)}


def _build(engine: SearchEngine, paragraphs: ParagraphFile, report: ReportProgress) -> dict[str, Any]:
    return {"bytes": engine.build(paragraphs, report)}


def _search(
    engine: SearchEngine, asked: list[str], seconds: float, at_once: Barrier, report: ReportProgress
) -> dict[str, Any]:
    search = engine.open()
    warm_up(search, asked, seconds)
    at_once.wait()
    return searched(search, asked, seconds, report)


def _servers(folder: Path) -> tuple[str, ...]:
    return (NAMED,) if Settings().search_server else available(folder) or (OSMEM,)


@contextmanager
def _opened(engine: str, folder: Path, count: int, servers: Path) -> Iterator[OpenedEngine]:
    if engine in IN_FOLDERS:
        with tempfile.TemporaryDirectory(dir=folder) as own:
            yield OpenedEngine(IN_FOLDERS[engine](Path(own) / "index"), engine)
    elif named := Settings().search_server:
        with _removed(named) as server:
            yield OpenedEngine(Elasticsearch(server), engine)
    elif engine == OSMEM:
        with _osmem(count) as osmem:
            yield OpenedEngine(Elasticsearch(SearchServer(urls=(osmem.url,))), engine, osmem.process.pid)
    else:
        with running(engine, HEAP, servers) as started:
            yield OpenedEngine(Elasticsearch(SearchServer(urls=(started.url,))), version(started.url), started.pid)


@contextmanager
def _osmem(count: int) -> Iterator[Any]:
    if count > MOST_IN_OSMEM:
        raise SkippedError(
            f"osmem-server is made for tests and too slow for more than {MOST_IN_OSMEM:,} paragraphs; "
            "COTRAIL_SEARCH_URL may name a real server"
        )
    with OsmemServer.start(japanese=False) as osmem:
        yield osmem


@contextmanager
def _removed(server: SearchServer) -> Iterator[SearchServer]:
    """The server with an index prefix of this benchmark's own; those indexes are removed afterwards."""
    prefix = f"{server.prefix}benchmark-{secrets.token_hex(4)}-"
    own = SearchServer(urls=server.urls, api_key=server.api_key, ca=server.ca, prefix=prefix)
    try:
        yield own
    finally:
        client = ElasticsearchClient(own)
        for index in indexes(client, f"{prefix}*"):
            remove(client, index)


def _print(rows: list[dict[str, Any]]) -> None:
    columns = ("paragraphs", "engine", "built in", "on disk", "memory", "server")
    table = Table(*columns, *(f"{n} at once" for n in PROCESSES))
    for row in rows:
        if "skipped" in row:
            table.add_row(f"{row['paragraphs']:,}", row["engine"], row["skipped"])
            continue
        built = row["built"]
        rates = [f"{each['queries_per_second']:,.0f} /s" for each in row["searched"].values()]
        size, peak = f"{built['bytes'] / 2**20:,.0f} MiB", f"{built['peak_mib']:,} MiB"
        held = f"{row['server']['own_mib']:,} MiB" if "server" in row else ""
        table.add_row(f"{row['paragraphs']:,}", row["name"], f"{built['seconds']:,.1f} s", size, peak, held, *rates)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
