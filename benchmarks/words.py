"""Agreement of tantivy's tokens, and of the paragraphs found by them, with Elasticsearch's analyzer `english`.

`python -m benchmarks.words --corpus FILE... --chains FILE... [--output FILE]`. Tokens are compared before stemming;
queries are the questions of demonstrations and the sentences of their chains. Elasticsearch is started from the folder
of `benchmarks.search_servers`.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.console import Console
from rich.progress import track
from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from benchmarks import machine, search_servers
from cotrail.core.ports.retriever import Retriever, SearchRequest
from cotrail.core.questions import Paragraph
from cotrail.data.corpora.files import read_corpus
from cotrail.data.demonstrations.sets import read_demonstrations
from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient
from cotrail.engines.retrieval.elasticsearch.store import ElasticsearchStore
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.engines.retrieval.stores import build_index, open_index
from cotrail.engines.retrieval.tantivy import TERM, plain
from cotrail.errors import InputError
from cotrail.evaluation.metrics.factual_errors import sentences_of

COUNT = 10
EVERY = 4
"""Every so many paragraphs, tokens are compared: each comparison takes a request."""


class _Token(Struct, frozen=True):
    token: str


class _Analyzed(Struct, frozen=True):
    tokens: list[_Token]


def main(
    corpus: Annotated[list[Path], typer.Option(help="Paragraphs.")],
    chains: Annotated[list[Path], typer.Option(help="Demonstrations with chains of thought.")],
    output: Annotated[Path | None, typer.Option(help="Write the result into this file as well, as JSON.")] = None,
) -> None:
    """Compare tokens and hits, and print the agreement."""
    if "elasticsearch" not in search_servers.available():
        raise InputError("there is no Elasticsearch that can be started; name its folder by TEST_SEARCH_SERVERS")
    paragraphs = list(read_corpus(corpus))
    asked = sorted({query for path in chains for each in read_demonstrations(path).items for query in queries(each)})
    with search_servers.running("elasticsearch") as server:
        report = {
            "command": machine.command("benchmarks.words"),
            "server": search_servers.version(server.url),
            "paragraphs": len(paragraphs),
            "words": cut(server.url, paragraphs),
            "searches": found(server.url, paragraphs, asked),
            "machine": machine.describe(),
            "versions": machine.versions("tantivy", "elasticsearch"),
        }
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n")
    Console().print_json(data=report)


def queries(demonstration: Any) -> Iterator[str]:
    """The question, and each sentence of the chain."""
    yield demonstration.question
    yield from sentences_of(demonstration.answer)


def cut(url: str, paragraphs: Sequence[Paragraph]) -> dict[str, Any]:
    """Number of Elasticsearch's tokens, and how many of these tantivy's analyzer lacks."""
    analyzer = TextAnalyzerBuilder(Tokenizer.regex(TERM)).filter(Filter.lowercase()).build()
    client = ElasticsearchClient(SearchServer(urls=(url,)))
    missing = count = 0
    for paragraph in track(paragraphs[::EVERY], "Words"):
        words = standard_words(client, text := plain(f"{paragraph.title} {paragraph.text}"))
        count += words.total()
        missing += (words - Counter(analyzer.analyze(text))).total()
    return {"compared": count, "otherwise": missing}


def standard_words(client: ElasticsearchClient, text: str) -> Counter[str]:
    """The tokens of a text by Elasticsearch."""
    asked = {"tokenizer": "standard", "filter": ["lowercase"], "text": text}
    analyzed = client.ask(lambda api: api.indices.analyze(body=asked), _Analyzed)
    return Counter(each.token for each in analyzed.tokens)


def found(url: str, paragraphs: Sequence[Paragraph], asked: Sequence[str]) -> dict[str, Any]:
    """Number of Elasticsearch's best paragraphs that tantivy finds too, and of queries with the same ranking."""
    server = SearchServer(urls=(url,), prefix="words-")
    store = ElasticsearchStore(server)
    store.build("words", paragraphs)
    with tempfile.TemporaryDirectory() as folder:
        build_index(paragraphs, Path(folder) / "words")
        both: list[Retriever] = [store.open("words"), open_index(Path(folder) / "words")]
        results = [
            [[hit.paragraph.id for hit in each.search(SearchRequest(query=query, count=COUNT))] for query in asked]
            for each in both
        ]
    pairs = list(zip(*results, strict=True))
    return {
        "queries": len(asked),
        "found": sum(len(there) for there, _ in pairs),
        "found_in_both": sum(len(set(there) & set(here)) for there, here in pairs),
        "same_order": sum(there == here for there, here in pairs),
    }


if __name__ == "__main__":
    typer.run(main)
