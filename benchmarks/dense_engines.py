"""Engines over embeddings that benchmarks compare: cotrail's dense and hybrid search, and faiss alone.

Embeddings are made up, in clusters as of texts (`benchmarks.approximate`), so that neither building nor searching is
measured with a language model in it. Each engine embeds each query, which costs all of them the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import faiss
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.approximate import CLUSTER, NUMBERS, SPREAD
from benchmarks.search_engines import FIELDS, TENTH, Elasticsearch, SearchEngine, filed
from benchmarks.searching import RETRIEVED, Search
from benchmarks.stages import ReportProgress, bytes_of
from cotrail.core.ports.retriever import SearchRequest
from cotrail.core.questions import Hit, Paragraph
from cotrail.engines.retrieval import embeddings
from cotrail.engines.retrieval.dense import dense_engine
from cotrail.engines.retrieval.embeddings import DenseSettings
from cotrail.engines.retrieval.engine import NO_MODELS
from cotrail.engines.retrieval.search_server import SearchServer
from cotrail.engines.retrieval.stores import build_index, open_index

RECALL = 0.95
"""The least share of the exact ones that approximate searches have to find."""

ASKED = 200
"""Queries whose recall is measured."""

TUNED = 200
"""Embeddings whose neighbours faiss's lists are tuned by; cotrail takes as many."""


class MadeUpEmbedder(Struct, frozen=True):
    """An embedder, and its own catalogue entry, whose vector of a text depends on the text's checksum alone.

    name: ends with the number of clusters.
    """

    name: str

    def identity(self) -> str:
        """Its name: nothing else decides its vectors."""
        return self.name

    def check_profile(self, profile: str) -> None:
        """Every profile is the same."""

    def open(self, profile: str) -> "MadeUpEmbedder":
        """Itself."""
        return self

    def embed(self, texts: Sequence[str], side: str) -> NDArray[Any]:
        """Points around the clusters' centres, of length 1."""
        clusters = int(self.name.rpartition("-")[2])
        points = np.empty((len(texts), NUMBERS), np.float32)
        for row, text in enumerate(texts):
            checksum = crc32(text.encode())
            own = np.random.default_rng(checksum).standard_normal(NUMBERS, np.float32)
            points[row] = _centre(checksum % clusters) + SPREAD * own
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        return points


@cache
def _centre(number: int) -> NDArray[Any]:
    return np.random.default_rng(2**32 + number).standard_normal(NUMBERS, np.float32)


def embedder(paragraphs: int) -> MadeUpEmbedder:
    """The one for a corpus of so many paragraphs."""
    return MadeUpEmbedder(f"made-up-{max(1, paragraphs // CLUSTER)}")


class MadeUpEmbedders:
    """In place of the catalogue of embedders."""

    def find(self, models: Path, name: str) -> MadeUpEmbedder:
        """The embedder of that name."""
        return MadeUpEmbedder(name)


def use_made_up() -> None:
    """Has cotrail take made-up embeddings in this process."""
    embeddings.EMBEDDERS = MadeUpEmbedders()  # type: ignore[assignment, attr-defined]


class Dense(Struct, frozen=True):
    """cotrail's index with embeddings. settings: of the index; filter_: of every search, none where it is empty."""

    folder: Path
    paragraphs: int
    settings: dict[str, Any] = {}
    filter_: str = ""

    def build(self, paragraphs: Iterable[Paragraph], report: ReportProgress) -> int:
        """Index as `cotrail index --dense` does."""
        use_made_up()
        settings = DenseSettings(
            model=embedder(self.paragraphs).name, fields=FIELDS if self.filter_ else {}, **self.settings
        )
        given = filed(paragraphs) if self.filter_ else paragraphs
        build_index(given, self.folder, report, engine=dense_engine(NO_MODELS), settings=settings)
        return bytes_of(self.folder)

    def open(self) -> Search:
        """Search as workers do."""
        use_made_up()
        corpus = open_index(self.folder)
        options = {"filter": self.filter_} if self.filter_ else {}
        return lambda query: corpus.search(SearchRequest(query=query, count=RETRIEVED, options=options))


class ElasticsearchDense(Elasticsearch, frozen=True):
    """cotrail's index with embeddings in a search server."""

    def build(self, paragraphs: Iterable[Paragraph], report: ReportProgress) -> int:
        use_made_up()
        return super().build(paragraphs, report)

    def open(self) -> Search:
        use_made_up()
        return super().open()


def on_server(server: SearchServer, kept: Path, paragraphs: int) -> ElasticsearchDense:
    """That engine for a corpus of so many paragraphs."""
    return ElasticsearchDense(server, {"model": embedder(paragraphs).name}, kept)


class Faiss(Struct, frozen=True):
    """faiss alone, with one thread: it keeps no paragraphs, and finds their numbers. listed: in inverted lists."""

    folder: Path
    paragraphs: int
    listed: bool = False

    def build(self, paragraphs: Iterable[Paragraph], report: ReportProgress) -> int:
        """Index all embeddings, which are in memory at once; of lists, so many are read that the recall is reached."""
        faiss.omp_set_num_threads(1)
        vectors = all_embeddings(paragraphs, self.paragraphs, report)
        index: Any = faiss.IndexFlatIP(NUMBERS)
        if self.listed:
            lists = int(4 * self.paragraphs**0.5)
            index = faiss.IndexIVFFlat(index, NUMBERS, lists, faiss.METRIC_INNER_PRODUCT)
            index.train(vectors)
        index.add(vectors)
        if self.listed:
            index.nprobe = _tuned(index, vectors)
        self.folder.mkdir()
        faiss.write_index(index, str(self.folder / "index.faiss"))
        return bytes_of(self.folder)

    def open(self) -> Search:
        """Search the index in memory."""
        faiss.omp_set_num_threads(1)
        index, model = faiss.read_index(str(self.folder / "index.faiss")), embedder(self.paragraphs)
        return lambda query: index.search(model.embed([query], "query"), RETRIEVED)[1][0].tolist()


def _tuned(index: Any, vectors: NDArray[Any]) -> int:
    """The fewest lists to read, in powers of two, that find enough of what exact search finds."""
    asked = vectors[:: max(1, len(vectors) // TUNED)][:TUNED]
    _, exact = faiss.knn(asked, vectors, RETRIEVED, metric=faiss.METRIC_INNER_PRODUCT)
    index.nprobe = 1
    while shared(index.search(asked, RETRIEVED)[1].tolist(), exact.tolist()) < RECALL and index.nprobe < index.nlist:
        index.nprobe *= 2
    return int(index.nprobe)


def all_embeddings(paragraphs: Iterable[Paragraph], count: int, report: ReportProgress) -> NDArray[Any]:
    """The embedding of each paragraph, in their order."""
    model, vectors, rest, done = embedder(count), np.empty((count, NUMBERS), np.float32), iter(paragraphs), 0
    while some := [each.statement for each in islice(rest, 1_000)]:
        vectors[done : done + len(some)] = model.embed(some, "text")
        done += len(some)
        report(done)
    return vectors


IN_FOLDERS: Mapping[str, Callable[[Path, int], SearchEngine]] = {
    "dense": Dense,
    "dense, recall 0.95": lambda folder, count: Dense(folder, count, {"recall": RECALL}),
    "dense, a tenth by a filter": lambda folder, count: Dense(folder, count, filter_=TENTH),
    "hybrid": lambda folder, count: Dense(folder, count, {"retriever": "hybrid"}),
    "faiss alone, flat": Faiss,
    "faiss alone, lists": lambda folder, count: Faiss(folder, count, listed=True),
}
"""Engines that need no server, by their names: each takes its folder and the number of paragraphs."""

BY_EMBEDDINGS = {"dense", "dense, recall 0.95", "faiss alone, flat", "faiss alone, lists"}
"""Those of them whose recall is measured: the others don't find the nearest embeddings among all."""


def recall(
    engine: SearchEngine, paragraphs: Iterable[Paragraph], count: int, asked: Sequence[str], report: ReportProgress
) -> dict[str, Any]:
    """The share of the truly nearest paragraphs that the engine finds, on average over some queries."""
    asked = asked[:ASKED]
    vectors, queries = all_embeddings(paragraphs, count, report), embedder(count).embed(asked, "query")
    _, exact = faiss.knn(queries, vectors, RETRIEVED, metric=faiss.METRIC_INNER_PRODUCT)
    search = engine.open()
    return {"recall": shared([_ids(search(query)) for query in asked], exact.tolist())}


def shared(found: Sequence[Sequence[int]], exact: Sequence[Sequence[int]]) -> float:
    """The mean share of the exact ones that are among those found."""
    shares = [len({*some} & {*true}) / len(true) for some, true in zip(found, exact, strict=True)]
    return round(sum(shares) / len(shares), 4)


def _ids(found: object) -> list[int]:
    """The numbers of paragraphs, which are their ids."""
    return [int(each.paragraph.id) if isinstance(each, Hit) else each for each in cast(Sequence[Any], found)]
