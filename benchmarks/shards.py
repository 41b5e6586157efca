"""Cost of several shards: queries per second with global word statistics, and with each shard's own.

`python -m benchmarks.shards [--size 100000] [--output FILE]` fills an index of each number of shards, in the server of
COTRAIL_SEARCH_URL, with synthetic abstracts (`benchmarks.zipfian`). Each way of counting words is measured in several
turns, in which one process searches; the best turn counts. The share of ranks that agree with the first index is
reported too.
"""

import json
import secrets
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe, versions
from benchmarks.search_engines import made_up
from benchmarks.searching import RETRIEVED, searched
from cotrail.common.humanize import percent
from cotrail.configuration.settings import Settings
from cotrail.core.ports.retriever import SearchRequest
from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient
from cotrail.engines.retrieval.elasticsearch.index import indexes, remove
from cotrail.engines.retrieval.elasticsearch.retriever import ElasticsearchRetriever
from cotrail.engines.retrieval.elasticsearch.store import ElasticsearchStore
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.errors import InputError

QUERIES = 500
TURNS = 3
MEASURED = ("cotrail", "elasticsearch", "elastic-transport")


def main(
    size: Annotated[int, typer.Option(help="How many made-up paragraphs.")] = 100_000,
    shards: Annotated[str, typer.Option(help="How many shards, with commas.")] = "1,2,4",
    seconds: Annotated[float, typer.Option(help="How long a turn is.")] = 10,
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Measure each number of shards; print queries per second, and the share of ranks that agree with one shard."""
    server = Settings().search_server
    if server is None:
        raise InputError("COTRAIL_SEARCH_URL names no server")
    own = replace(server, prefix=f"{server.prefix}benchmark-{secrets.token_hex(4)}-")
    asked = [each.text.split(". ")[0] for each in islice(made_up(size), 0, size, max(1, size // QUERIES))]
    try:
        rows, created_by = _measured(own, size, [int(count) for count in shards.split(",")], asked, seconds)
    finally:
        client = ElasticsearchClient(own)
        for index in indexes(client, f"{own.prefix}*"):
            remove(client, index)
    report = {"paragraphs": size, "measured": rows, "created_by": created_by}
    report |= {"machine": describe(), "versions": versions(*MEASURED)}
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    _print(rows)


def _measured(
    server: SearchServer, size: int, shards: Sequence[int], asked: Sequence[str], seconds: float
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    corpora = {count: _built(server, size, count) for count in shards}
    first = corpora[shards[0]]
    expected = _found(first, asked)
    ways = [(count, "together", corpus) for count, corpus in corpora.items()]
    ways += [(count, "apart", _apart(corpus)) for count, corpus in corpora.items() if count > 1]
    # Alternating turns, so that other load on the machine affects all ways alike.
    turns = [[_turn(corpus, asked, seconds) for _, _, corpus in ways] for _ in range(TURNS)]
    rows = []
    for (count, counted, corpus), each in zip(ways, zip(*turns, strict=True), strict=True):
        best = max(each, key=lambda turn: float(turn["queries_per_second"]))
        alike = _alike(expected, _found(corpus, asked))
        rows.append({"shards": count, "counted": counted, "as_the_first": alike} | best)
    return rows, first.manifest.created_by


def _turn(corpus: ElasticsearchRetriever, asked: Sequence[str], seconds: float) -> dict[str, Any]:
    turn = searched(
        lambda query: corpus.search(SearchRequest(query=query, count=RETRIEVED)), asked, seconds, lambda _: None
    )
    return turn | {"queries_per_second": round(turn["queries"] / turn["searching"], 1)}


def _built(server: SearchServer, size: int, shards: int) -> ElasticsearchRetriever:
    store = ElasticsearchStore(replace(server, index={"number_of_shards": shards}))
    store.build(f"of-{shards}", made_up(size))
    return store.by_words(f"of-{shards}")


def _apart(corpus: ElasticsearchRetriever) -> ElasticsearchRetriever:
    """A retriever that believes in a single shard and so requests no global statistics: each shard uses its own."""
    return ElasticsearchRetriever(corpus._client, corpus._locate, replace(corpus._located, shards=1))


def _found(corpus: ElasticsearchRetriever, asked: Sequence[str]) -> list[list[str]]:
    return [[hit.paragraph.id for hit in corpus.search(SearchRequest(query=query, count=RETRIEVED))] for query in asked]


def _alike(expected: list[list[str]], found: list[list[str]]) -> float:
    """Share of all ranks that hold the same paragraph."""
    places = sum(map(len, expected))
    same = sum(a == b for one, other in zip(expected, found, strict=True) for a, b in zip(one, other, strict=False))
    return round(same / places, 4)


def _print(rows: list[dict[str, Any]]) -> None:
    table = Table("shards", "words counted", "queries a second", "median", "95th percentile", "as the first")
    for row in rows:
        rate, alike = f"{row['queries_per_second']:,.0f}", percent(row["as_the_first"])
        table.add_row(str(row["shards"]), row["counted"], rate, f"{row['median_ms']} ms", f"{row['p95_ms']} ms", alike)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
