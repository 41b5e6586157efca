"""What several shards cost: queries a second with word counts of all shards together, and with each shard's own.

`python -m benchmarks.shards [--size 100000] [--output FILE]` fills an index of each number of shards, in the server
that COTRAIL_SEARCH_URL names, with made-up abstracts (`benchmarks.zipfian`). Each way of counting has its turns, in
which one process searches; the best turn counts. Beside them stands how many places are those of the first index.
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
from benchmarks.retrieval import made_up
from benchmarks.searching import RETRIEVED, searched
from configuration.settings import Settings
from cotrail.engines.retrieval.elasticsearch.client import Client
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
    """Measures each number of shards; prints queries a second, and how many places are as with one shard."""
    server = Settings().search_server
    if server is None:
        raise InputError("COTRAIL_SEARCH_URL names no server")
    own = replace(server, prefix=f"{server.prefix}benchmark-{secrets.token_hex(4)}-")
    asked = [each.text.split(". ")[0] for each in islice(made_up(size), 0, size, max(1, size // QUERIES))]
    try:
        rows, created_by = _measured(own, size, [int(count) for count in shards.split(",")], asked, seconds)
    finally:
        client = Client(own)
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
    # Turn by turn, so that other work on the machine falls on all alike.
    turns = [[_turn(corpus, asked, seconds) for _, _, corpus in ways] for _ in range(TURNS)]
    rows = []
    for (count, counted, corpus), each in zip(ways, zip(*turns, strict=True), strict=True):
        best = max(each, key=lambda turn: float(turn["queries_per_second"]))
        alike = _alike(expected, _found(corpus, asked))
        rows.append({"shards": count, "counted": counted, "as_the_first": alike} | best)
    return rows, first.manifest.created_by


def _turn(corpus: ElasticsearchRetriever, asked: Sequence[str], seconds: float) -> dict[str, Any]:
    turn = searched(lambda query: corpus.search(query, RETRIEVED), asked, seconds, lambda _: None)
    return turn | {"queries_per_second": round(turn["queries"] / turn["searching"], 1)}


def _built(server: SearchServer, size: int, shards: int) -> ElasticsearchRetriever:
    store = ElasticsearchStore(replace(server, index={"number_of_shards": shards}))
    store.build(f"of-{shards}", made_up(size))
    return store.open(f"of-{shards}")


def _apart(corpus: ElasticsearchRetriever) -> ElasticsearchRetriever:
    """Searches as if there were one shard, so that each scores by its own words."""
    return ElasticsearchRetriever(corpus._client, corpus._locate, replace(corpus._located, shards=1))


def _found(corpus: ElasticsearchRetriever, asked: Sequence[str]) -> list[list[str]]:
    return [[hit.paragraph.id for hit in corpus.search(query, RETRIEVED)] for query in asked]


def _alike(expected: list[list[str]], found: list[list[str]]) -> float:
    """The part of all places that hold the same paragraph."""
    places = sum(map(len, expected))
    same = sum(a == b for one, other in zip(expected, found, strict=True) for a, b in zip(one, other, strict=False))
    return round(same / places, 4)


def _print(rows: list[dict[str, Any]]) -> None:
    table = Table("shards", "words counted", "queries a second", "median", "95th percentile", "as the first")
    for row in rows:
        rate, alike = f"{row['queries_per_second']:,.0f}", f"{row['as_the_first']:.1%}"
        table.add_row(str(row["shards"]), row["counted"], rate, f"{row['median_ms']} ms", f"{row['p95_ms']} ms", alike)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
