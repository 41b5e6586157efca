"""`cotrail serve-corpus` with BM25: queries a second over HTTP, as shares of those of tantivy called directly.

`python -m benchmarks.retrieval_server [--size 10000] [--output FILE]` indexes made-up abstracts (`benchmarks.zipfian`),
serves them in a process of its own, and asks for three paragraphs a query, in requests of 1 and of 64 queries, over one
connection and over several. All ways take turns; the best turn of each counts. Those who ask share the machine's cores.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.machine import command, describe, versions
from benchmarks.search_engines import made_up
from benchmarks.zipfian import queries
from cotrail.core.ports.retriever import SearchRequest
from cotrail.engines.retrieval.stores import FolderStore

COUNT = 3
QUERIES = 2_048
SEED = 2
TURNS = 3
MEASURED = ("cotrail", "tantivy", "litestar", "uvicorn", "h11", "msgspec")

WAYS = ((1, 1), (1, 8), (64, 1), (64, 2))
"""Queries of a request, and connections."""


def main(
    size: Annotated[int, typer.Option(help="How many made-up paragraphs.")] = 10_000,
    seconds: Annotated[float, typer.Option(help="How long a turn is.")] = 5,
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Measure each way, and print queries a second."""
    asked = queries(QUERIES, SEED)
    with tempfile.TemporaryDirectory() as home:
        store = FolderStore(Path(home, "corpora"))
        store.build("made-up", made_up(size))
        with _served(home) as port:
            rows = _measured(partial(_directly, store.open("made-up")), partial(_over_http, port), asked, seconds)
    words = round(sum(len(each.split()) for each in asked) / len(asked), 1)
    report = {"command": command("benchmarks.retrieval_server"), "paragraphs": size, "words_a_query": words}
    report |= {"load_average": round(os.getloadavg()[0], 1), "measured": rows}
    report |= {"machine": describe(), "versions": versions(*MEASURED)}
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(rows)


def _measured(directly: Any, over_http: Any, asked: Sequence[str], seconds: float) -> list[dict[str, Any]]:
    turns = {(0, 0): partial(directly, asked, seconds)}
    turns |= {way: partial(over_http, asked, seconds, *way) for way in WAYS}
    rates = [{way: turn() for way, turn in turns.items()} for _ in range(TURNS)]
    best = {way: max(each[way] for each in rates) for way in turns}
    return [
        {
            "queries_a_request": way[0] or None,
            "connections": way[1] or None,
            "queries_per_second": round(rate),
            "share_of_direct": round(rate / best[0, 0], 3),
        }
        for way, rate in best.items()
    ]


def _directly(corpus: Any, asked: Sequence[str], seconds: float) -> float:
    """Queries a second that one thread has answered by the index itself."""
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        corpus.search(SearchRequest(query=asked[done % len(asked)], count=COUNT))
        done += 1
    return done / (time.perf_counter() - started)


def _over_http(port: int, asked: Sequence[str], seconds: float, size: int, connections: int) -> float:
    """Queries a second that the server answers."""
    bodies = [
        json.dumps({"queries": asked[start : start + size], "topk": COUNT, "return_scores": True})
        for start in range(0, len(asked), size)
    ]
    started = time.perf_counter()
    with ThreadPoolExecutor(connections) as pool:
        ends = [started + seconds] * connections
        answered = sum(pool.map(partial(_asked, port, bodies), range(connections), ends))
    return answered * size / (time.perf_counter() - started)


def _asked(port: int, bodies: Sequence[str], first: int, end: float) -> int:
    """The number of requests that are answered over one connection until a time."""
    connection, done = http.client.HTTPConnection("127.0.0.1", port, timeout=60), 0
    while time.perf_counter() < end:
        connection.request("POST", "/retrieve", bodies[(first + done) % len(bodies)])
        response = connection.getresponse()
        content = response.read()
        if response.status != http.HTTPStatus.OK:
            raise RuntimeError(content.decode())
        done += 1
    connection.close()
    return done


@contextmanager
def _served(home: str) -> Iterator[int]:
    """Serves the corpus in a process of its own; yields its port."""
    arguments = [sys.executable, "-m", "cotrail.cli.main", "serve-corpus", "made-up", "--port", "0"]
    environment = os.environ | {"COTRAIL_HOME": home, "COLUMNS": "200"}
    with subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        try:
            yield int(said.partition("/retrieve")[0].rpartition(":")[2])
        finally:
            process.terminate()


def _print(rows: list[dict[str, Any]]) -> None:
    table = Table("queries a request", "connections", "queries a second", "of tantivy called directly")
    for row in rows:
        way = (str(row["queries_a_request"] or "directly"), str(row["connections"] or "-"))
        table.add_row(*way, f"{row['queries_per_second']:,}", f"{row['share_of_direct']:.2f}")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
