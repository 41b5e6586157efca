"""Search engines over the same paragraphs: cost of building an index, and queries per second.

`python -m benchmarks.retrieval [--sizes 10000,200000,2000000] [--corpus FILE]... [--output FILE]` compares tantivy,
bm25s and search servers in one run, over synthetic abstracts (`benchmarks.zipfian`) or over the paragraphs of corpus
files. With `--every-way` also what cotrail does with embeddings and filters, tantivy and faiss alone, and how much of
what exact search finds is found; by default among 10,000 and 100,000 paragraphs. The server is that of
COTRAIL_SEARCH_URL; without it, Elasticsearch and OpenSearch are started from a folder (`benchmarks.search_servers`);
without that, osmem-server is used, which is made for tests. Every build and every search is a process of its own. The
files go to a temporary folder below TMPDIR, about 6 GB for 5,000,000 paragraphs; the output file is written again after
each engine.
"""

import json
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Struct
from osmem_server import OsmemServer  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from benchmarks import dense_engines
from benchmarks.machine import command, describe, versions
from benchmarks.search_engines import (
    BM25S,
    TENTH,
    Elasticsearch,
    ParagraphFile,
    SearchEngine,
    Tantivy,
    TantivyAlone,
    made_up,
)
from benchmarks.search_servers import FOLDER, HEAP, available, running, version
from benchmarks.searching import searched, together, warm_up
from benchmarks.stages import ReportProgress, StageError, bytes_of, measured, memory, screen
from cotrail.configuration.settings import Settings
from cotrail.data.corpora.files import read_corpus
from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient
from cotrail.engines.retrieval.elasticsearch.index import indexes, remove
from cotrail.engines.retrieval.engine import KEPT_EMBEDDINGS
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.errors import InputError

WORDS, EVERY_WAY = "10000,200000,2000000", "10000,100000"
"""The default sizes."""

NAMED = "named search server"
OSMEM = "osmem-server"
DENSE = ", dense"
"""After a server's name: with embeddings."""

MEASURED = ("cotrail", "tantivy", "bm25s", "faiss-cpu", "osmem-server", "elastic-transport", "numpy")

MOST_IN_OSMEM = 200_000
"""Limit for osmem, which keeps everything in memory and scores every paragraph that has one of a query's words."""

Shown = Callable[[str, int], ReportProgress]

MakeEngine = Callable[[Path, int], SearchEngine]
"""Makes an engine for a folder and a number of paragraphs."""

BY_WORDS: Mapping[str, MakeEngine] = {
    "tantivy": lambda folder, _: Tantivy(folder),
    "bm25s": lambda folder, _: BM25S(folder),
}
IN_FOLDERS: Mapping[str, MakeEngine] = {
    **BY_WORDS,
    "tantivy alone": lambda folder, _: TantivyAlone(folder),
    "tantivy, a tenth by a filter": lambda folder, _: Tantivy(folder, TENTH),
    **dense_engines.IN_FOLDERS,
}
"""Engines that need no server."""


def main(
    sizes: Annotated[str | None, typer.Option(help="How many made-up paragraphs, with commas.")] = None,
    corpus: Annotated[list[Path] | None, typer.Option(help="Take this file's paragraphs instead.")] = None,
    seconds: Annotated[float, typer.Option(help="How long each process searches.")] = 3,
    processes: Annotated[str, typer.Option(help="How many search at once, with commas.")] = "1,2,4,8",
    servers: Annotated[Path, typer.Option(help="Where Elasticsearch and OpenSearch can be started.")] = FOLDER,
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
    *,
    every_way: Annotated[bool, typer.Option("--every-way", help="Embeddings and filters as well.")] = False,
) -> None:
    """Measure each engine with each size in turn; print sizes, times and queries per second."""
    rows: list[dict[str, Any]] = []
    by, at_once = _servers(servers), [*map(int, processes.split(","))]
    names = (*IN_FOLDERS, *by, *(name + DENSE for name in by)) if every_way else (*BY_WORDS, *by)
    if every_way and corpus:
        raise typer.BadParameter("the ids of made-up paragraphs are numbers, by which --every-way compares")
    for size in [0] if corpus else map(int, (sizes or (EVERY_WAY if every_way else WORDS)).split(",")):
        with tempfile.TemporaryDirectory(prefix="cotrail-benchmark-") as folder, screen() as shown:
            path = Path(folder) / "paragraphs.jsonl"
            (written,) = measured([(_write, (path, size, corpus))], shown("writing paragraphs", size))
            paragraphs = ParagraphFile(path, written["paragraphs"])
            for engine in names:
                opening = _opened(engine, Path(folder), paragraphs.count, servers)
                rows.append(_row(engine, opening, Course(paragraphs, seconds, at_once, shown)))
                if output is not None:
                    output.write_text(json.dumps(_report(rows), indent=2) + "\n")
    _print(rows)


def _report(rows: list[dict[str, Any]]) -> dict[str, Any]:
    about = {"command": command("benchmarks.retrieval"), "machine": describe(), "versions": versions(*MEASURED)}
    return {"measured": rows, **about}


def _write(path: Path, size: int, corpus: list[Path] | None, report: ReportProgress) -> dict[str, Any]:
    count = 0
    with path.open("wb") as file:
        for count, paragraph in enumerate(read_corpus(corpus) if corpus else made_up(size), start=1):
            file.write(msgspec.json.encode(paragraph) + b"\n")
            if count % 1_000 == 0:
                report(count)
    return {"paragraphs": count}


class Course(Struct, frozen=True):
    """How each engine is measured: with what, how long, by how many processes, and where that is shown."""

    paragraphs: ParagraphFile
    seconds: float
    processes: list[int]
    shown: Shown


class OpenedEngine(Struct, frozen=True):
    """An engine ready to be measured.

    kept: the folder of embeddings that it keeps next to the index; server: its process id if it runs on this machine.
    """

    engine: SearchEngine
    name: str
    kept: Path
    server: int | None = None


class SkippedError(Exception):
    """A measurement is skipped; the message says why."""


def _row(engine: str, opening: AbstractContextManager[OpenedEngine], course: Course) -> dict[str, Any]:
    row = {"engine": engine, "paragraphs": course.paragraphs.count}
    try:
        with opening as opened:
            found = _measured(opened, course)
            if engine in dense_engines.BY_EMBEDDINGS or engine.endswith(DENSE):
                found |= _recalled(opened, course)
            return row | found
    except SkippedError as reason:
        return row | {"skipped": str(reason)}
    except StageError as error:
        return row | {"skipped": f"it was tried, and its process {error}"}


def _measured(opened: OpenedEngine, course: Course) -> dict[str, Any]:
    paragraphs, shown, title = course.paragraphs, course.shown, f"{opened.name}, {course.paragraphs.count:,} paragraphs"
    (built,) = measured([(_build, (opened.engine, paragraphs))], shown(f"{title}: indexing", paragraphs.count))
    if "refused" in built:
        raise SkippedError(built["refused"])
    if opened.kept.exists():
        built["kept_bytes"] = bytes_of(opened.kept)
    asked = paragraphs.queries()
    rates = {}
    for count in course.processes:
        at_once = get_context("spawn").Barrier(count)
        # Each process begins elsewhere in the queries, so that none profits from what another has just cached.
        turns = [asked[len(asked) * i // count :] + asked[: len(asked) * i // count] for i in range(count)]
        stages = [(_search, (opened.engine, turn, course.seconds, at_once)) for turn in turns]
        rates[str(count)] = together(measured(stages, shown(f"{title}: {count} at once", len(asked))))
    server = {} if opened.server is None else {"server": _server_memory(opened.server)}
    return {"name": opened.name, "built": built, "searched": rates, **server}


def _recalled(opened: OpenedEngine, course: Course) -> dict[str, Any]:
    count = course.paragraphs.count
    arguments = (opened.engine, course.paragraphs, count, course.paragraphs.queries())
    (found,) = measured([(dense_engines.recall, arguments)], course.shown(f"{opened.name}: recall", count))
    return {"recall": found["recall"]}


def _server_memory(process: int) -> dict[str, int]:
    """A server's own memory in the end, and its peak, which includes the mapped files of the index."""
    return {"own_mib": memory("RssAnon", process), "peak_mib": memory("VmHWM", process)}


def _build(engine: SearchEngine, paragraphs: ParagraphFile, report: ReportProgress) -> dict[str, Any]:
    try:
        return {"bytes": engine.build(paragraphs, report)}
    except InputError as error:
        return {"refused": str(error)}


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
    with tempfile.TemporaryDirectory(dir=folder) as own:
        kept = Path(own) / KEPT_EMBEDDINGS
        if engine in IN_FOLDERS:
            yield OpenedEngine(IN_FOLDERS[engine](Path(own) / "index", count), engine, kept)
            return
        with _served(engine.removesuffix(DENSE), count, servers) as (server, name, process):
            if engine.endswith(DENSE):
                yield OpenedEngine(dense_engines.on_server(server, kept, count), name + DENSE, kept, process)
            else:
                yield OpenedEngine(Elasticsearch(server), name, kept, process)


@contextmanager
def _served(engine: str, count: int, servers: Path) -> Iterator[tuple[SearchServer, str, int | None]]:
    """A search server, its name, and its process id if it runs on this machine."""
    if named := Settings().search_server:
        with _removed(named) as server:
            yield server, engine, None
    elif engine == OSMEM:
        with _osmem(count) as osmem:
            yield SearchServer(urls=(osmem.url,)), engine, osmem.process.pid
    else:
        with running(engine, HEAP, servers) as started:
            yield SearchServer(urls=(started.url,)), version(started.url), started.pid


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
    counts = next((list(row["searched"]) for row in rows if "searched" in row), [])
    columns = ("paragraphs", "engine", "built in", "on disk", "memory", "server", "recall")
    table = Table(*columns, *(f"{n} at once" for n in counts))
    for row in rows:
        if "skipped" in row:
            table.add_row(f"{row['paragraphs']:,}", row["engine"], f"{row['skipped'][:60]}…")
            continue
        built = row["built"]
        rates = [f"{each['queries_per_second']:,.0f} /s" for each in row["searched"].values()]
        size, peak = f"{built['bytes'] / 2**20:,.0f} MiB", f"{built['peak_mib']:,} MiB"
        held = f"{row['server']['own_mib']:,} MiB" if "server" in row else ""
        costs = (f"{built['seconds']:,.1f} s", size, peak, held, f"{row['recall']:.3f}" if "recall" in row else "")
        table.add_row(f"{row['paragraphs']:,}", row["name"], *costs, *rates)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
