"""Search engines over words that benchmarks compare: cotrail's own index, tantivy alone, bm25s, and search servers."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import bm25s  # type: ignore[import-untyped]
import msgspec
import tantivy
from bm25s.tokenization import Tokenized  # type: ignore[import-untyped]
from msgspec import Struct

from benchmarks.searching import RETRIEVED, Search
from benchmarks.stages import ReportProgress, bytes_of
from benchmarks.zipfian import abstracts
from cotrail.core.ports.retriever import SearchRequest
from cotrail.core.questions import FiledParagraph, Paragraph
from cotrail.engines.retrieval.elasticsearch.client import ElasticsearchClient
from cotrail.engines.retrieval.elasticsearch.store import ElasticsearchStore
from cotrail.engines.retrieval.engine import KEPT_EMBEDDINGS, NewIndex
from cotrail.engines.retrieval.search_server import FieldKinds, SearchServer
from cotrail.engines.retrieval.stores import build_index, open_index
from cotrail.engines.retrieval.tantivy import Bm25Settings, english, plain

SEED = 1
QUERIES = 2_000

FIELDS: FieldKinds = {"part": "word"}
TENTH = "part:3"
"""A filter that lets a tenth of the paragraphs through: those whose number ends so."""


def made_up(size: int) -> Iterator[Paragraph]:
    """Synthetic paragraphs, the same each time."""
    for number, abstract in enumerate(abstracts(size, SEED)):
        yield Paragraph(id=str(number), title=abstract.title, text="".join(abstract.sentences))


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
    """cotrail's own index, mapped into memory; filter_: of every search, none where it is empty."""

    folder: Path
    filter_: str = ""

    def build(self, paragraphs: Iterable[Paragraph], report: ReportProgress) -> int:
        """Index as `cotrail index` does."""
        if self.filter_:
            build_index(filed(paragraphs), self.folder, report, settings=Bm25Settings(fields=FIELDS))
        else:
            build_index(paragraphs, self.folder, report)
        return bytes_of(self.folder)

    def open(self) -> Search:
        """Search title and text."""
        retriever = open_index(self.folder)
        options = {"filter": self.filter_} if self.filter_ else {}
        return lambda query: retriever.search(SearchRequest(query=query, count=RETRIEVED, options=options))


def filed(paragraphs: Iterable[Paragraph]) -> Iterator[Paragraph]:
    """The paragraphs with the field that `TENTH` filters by."""
    for each in paragraphs:
        yield FiledParagraph(id=each.id, title=each.title, text=each.text, fields={"part": (each.id[-1],)})


class TantivyAlone(Struct, frozen=True):
    """tantivy as its Python package has it: English stemming, its query parser, one stored field."""

    folder: Path

    def build(self, paragraphs: Iterable[Paragraph], report: ReportProgress) -> int:
        """Index with the writer's default settings."""
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("title", tokenizer_name="en_stem")
        schema.add_text_field("text", tokenizer_name="en_stem")
        schema.add_bytes_field("paragraph", stored=True, indexed=False)
        self.folder.mkdir()
        index = tantivy.Index(schema.build(), str(self.folder))
        writer = index.writer()
        for count, each in enumerate(paragraphs, start=1):
            stored = msgspec.msgpack.encode(each)
            writer.add_document(tantivy.Document(title=each.title, text=each.text, paragraph=stored))
            if count % 1_000 == 0:
                report(count)
        writer.commit()
        writer.wait_merging_threads()
        return bytes_of(self.folder)

    def open(self) -> Search:
        """Search title and text, and read the paragraphs."""
        index = tantivy.Index.open(str(self.folder))
        searcher = index.searcher()

        def search(query: str) -> object:
            parsed, _ = index.parse_query_lenient(query, ["title", "text"])
            hits = searcher.search(parsed, RETRIEVED, count=False).hits
            stored = [searcher.doc(address)["paragraph"][0] for _, address in hits]
            return [msgspec.msgpack.decode(each, type=Paragraph) for each in stored]

        return search


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


class Elasticsearch(Struct, frozen=True):
    """cotrail's index in a search server.

    settings: the index's, none for one of words alone. kept: the folder of embeddings that are kept.
    """

    server: SearchServer
    settings: dict[str, str] = {}
    kept: Path = Path(KEPT_EMBEDDINGS)

    def build(self, paragraphs: Iterable[Paragraph], report: ReportProgress) -> int:
        """Index as `cotrail index` does; the bytes are those that the server reports."""
        new = NewIndex(progress=report, settings=self.settings)
        ElasticsearchStore(self.server, kept=self.kept).build("corpus", paragraphs, new)
        index = f"{self.server.prefix}corpus"
        stats = ElasticsearchClient(self.server).ask(
            lambda api: api.indices.stats(index=index, metric="store"), dict[str, Any]
        )
        return int(stats["_all"]["total"]["store"]["size_in_bytes"])

    def open(self) -> Search:
        """Search with one request per query."""
        corpus = ElasticsearchStore(self.server).open("corpus")
        return lambda query: corpus.search(SearchRequest(query=query, count=RETRIEVED))
