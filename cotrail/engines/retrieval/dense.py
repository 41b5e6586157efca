"""Dense and hybrid search in a folder: embeddings of paragraphs, compared with faiss, next to an index of BM25.

An index has BM25's files (`cotrail.engines.retrieval.tantivy`), the embeddings as 32-bit numbers in one file that is
mapped into memory, and the paragraphs' ids in the same order. Where its settings ask for it, also inverted lists,
without which every search compares all embeddings.
"""

from array import array
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import cached_property, partial
from heapq import heappush, heappushpop
from math import sqrt
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import faiss
import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cotrail.core.questions import Paragraph
from cotrail.engines.embedding.cosine_similarity import Vector, cosine
from cotrail.engines.model_folders import content_digest
from cotrail.engines.retrieval.embeddings import (
    MARGIN,
    DenseSettings,
    HybridRetriever,
    KeptEmbeddings,
    SimilaritySettings,
    is_whole,
    with_model,
)
from cotrail.engines.retrieval.engine import KEPT_EMBEDDINGS, FolderEngine
from cotrail.engines.retrieval.manifest import FolderManifest
from cotrail.engines.retrieval.tantivy import TANTIVY, Bm25Settings, TantivyRetriever
from cotrail.errors import CorpusError

# Approximate search among embeddings, with faiss: inverted lists around centroids, of which a search reads a few.

FILE = "lists.faiss"

MEASURED, BEGINNING, NEAREST = 200, 50, 10
"""Recall is measured with the beginnings of so many paragraphs, of so many characters, as queries, and their nearest.
With whole ones, which lie nearer to the centroids, it would be higher than that of questions."""

OF_A_LIST = 39
"""Embeddings of a list at least, on average: fewer don't say where its centroid is."""

TRAINED = 64
"""Embeddings for each list, of which centroids are computed."""

CANDIDATES = 4
"""Candidates for each hit: lists have their numbers in 8 bits, whose order differs a little from the exact one."""

EQUAL = 1e-6
"""How far similarities of equal embeddings may be apart."""

AT_ONCE = 65_536
"""Embeddings that are added, and compared, at once."""


class Approximation(Struct, frozen=True, kw_only=True):
    """What an index reads and misses, as it was built.

    lists, read: how many there are, and how many of them a search reads. recall: the share of the true ten nearest
    paragraphs that is found, measured. digest: SHA-256 of the lists, which decide what is found.
    """

    lists: int
    read: int
    recall: float
    digest: str


def build_lists(folder: Path, vectors: NDArray[Any], queries: NDArray[Any], recall: float) -> Approximation:
    """Writes the lists of these embeddings; the fewest are read that reach the recall of queries, in powers of two.

    Raises CorpusError where all of them don't. One thread, so that the same embeddings have the same lists.
    """
    faiss.omp_set_num_threads(1)
    rows, numbers = vectors.shape
    lists = max(1, min(2 ** round(np.log2(4 * sqrt(rows))), rows // OF_A_LIST))
    eight_bits = faiss.ScalarQuantizer.QT_8bit
    index: Any = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(numbers), numbers, lists, eight_bits, faiss.METRIC_INNER_PRODUCT
    )
    index.cp.min_points_per_centroid = 1  # faiss would complain of a small corpus
    index.train(np.ascontiguousarray(vectors[:: max(1, rows // (TRAINED * lists))]))
    for _, chunk in _chunks(vectors):
        index.add(chunk)
    read, reached = _measured(index, vectors, queries, recall)
    faiss.write_index(index, str(folder / FILE))
    return Approximation(lists=lists, read=read, recall=reached, digest=content_digest(folder / FILE))


class Lists:
    """The lists in a folder, mapped into memory. Raises ValueError where they aren't those that were built."""

    def __init__(self, folder: Path, about: Approximation, rows: int) -> None:
        self._index = cast(Any, faiss.read_index(str(folder / FILE), faiss.IO_FLAG_MMAP_IFC))
        self._read = about.read
        if (self._index.ntotal, self._index.nlist) != (rows, about.lists):
            raise ValueError("the lists of embeddings are others")

    def candidates(self, vector: NDArray[Any], count: int) -> list[int]:
        """The rows among which the nearest `count` are looked for."""
        faiss.omp_set_num_threads(1)  # a search is small, and each worker has several at once
        return _candidates(self._index, vector, count, self._read)


def _candidates(index: Any, vector: NDArray[Any], count: int, read: int) -> list[int]:
    """Further lists are read where these hold fewer rows than are asked for."""
    settings = faiss.IVFSearchParameters()
    settings.nprobe = read
    _, rows = index.search(vector[None], min(CANDIDATES * count, index.ntotal), params=settings)
    found = [int(row) for row in rows[0] if row >= 0]
    if len(found) < min(count, index.ntotal) and read < index.nlist:
        return _candidates(index, vector, count, min(2 * read, index.nlist))
    return found


def _measured(index: Any, vectors: NDArray[Any], queries: NDArray[Any], wanted: float) -> tuple[int, float]:
    """How many lists are to be read, and the recall with them."""
    nearest = _nearest(queries, vectors, NEAREST)
    read = 1
    while True:
        shares = [_share(index, vectors, query, near, read) for query, near in zip(queries, nearest, strict=True)]
        reached = round(float(np.mean(shares)), 4)
        if reached >= wanted:
            return read, reached
        if read >= index.nlist:
            raise CorpusError(
                f"the approximate index finds {reached} of what exact search finds, less than {wanted}: take a lower "
                "`recall`, or leave it out and search exactly"
            )
        read = min(2 * read, index.nlist)


def _share(index: Any, vectors: NDArray[Any], query: NDArray[Any], nearest: NDArray[Any], read: int) -> float:
    """The share of the true nearest rows that is found; one as near as the last of them counts too."""
    least = float((vectors[nearest] @ query).min()) - EQUAL
    near = int((vectors[_candidates(index, query, NEAREST, read)] @ query >= least).sum())
    return min(near, len(nearest)) / len(nearest)


def _nearest(queries: NDArray[Any], vectors: NDArray[Any], count: int) -> NDArray[Any]:
    """The rows of the nearest embeddings of each query, whatever the memory: the best of each chunk are kept."""
    scores, rows = np.zeros((len(queries), 0), np.float32), np.zeros((len(queries), 0), np.int64)
    for first, chunk in _chunks(vectors):
        near, where = faiss.knn(queries, chunk, min(count, len(chunk)), metric=faiss.METRIC_INNER_PRODUCT)
        scores, rows = np.hstack([scores, near]), np.hstack([rows, where + first])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        scores, rows = np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)
    return rows


def _chunks(vectors: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    for first in range(0, len(vectors), AT_ONCE):
        yield first, np.ascontiguousarray(vectors[first : first + AT_ONCE])


class MappedVectors:
    """The embeddings in a folder; see `VectorIndex`. Raises ValueError where some are missing."""

    def __init__(self, folder: Path, manifest: FolderManifest, words: TantivyRetriever) -> None:
        self._words = words
        self._ends, self._ids = mapped(folder / "ends.u64", np.uint64), mapped(folder / "ids.txt", np.uint8)
        self._vectors = self._opened(folder, manifest.paragraphs)
        if len(self._ends) != manifest.paragraphs or len(self._ids) != (self._ends[-1] if len(self._ends) else 0):
            raise ValueError("embeddings are missing")
        about = msgspec.convert(manifest.built, Approximation) if "lists" in manifest.built else None
        self._lists = Lists(folder, about, manifest.paragraphs) if about else None

    def nearest(
        self, vector: Vector, count: int, titles: tuple[str, ...], filter_: str
    ) -> list[tuple[float, Paragraph]]:
        chosen = self._words.among(titles, filter_) if titles or filter_ else None
        among = None if chosen is None else sorted(self._rows[each] for each in chosen)
        scores = {self._id(row): self._score(vector, row) for row in self._candidates(vector, count, among)}
        ids = sorted(scores, key=lambda each: (-scores[each], each))[:count]
        found = self._words.paragraphs(ids)
        return [(scores[each], found[each]) for each in ids]

    def _opened(self, folder: Path, paragraphs: int) -> NDArray[Any]:
        return _vectors(folder, paragraphs)

    def _candidates(self, vector: Vector, count: int, among: list[int] | None) -> Iterable[int]:
        """The rows among which are the best `count` of these, or of all; these ascend."""
        if len(self._vectors) and vector.shape != self._vectors.shape[1:]:
            raise CorpusError("embeddings of the corpus are missing, or not its model's; index it again")
        if among is not None:
            return [among[place] for place in _best(vector, count, self._vectors[among])]
        return self._lists.candidates(vector, count) if self._lists else _best(vector, count, self._vectors)

    def _score(self, vector: Vector, row: int) -> float:
        return cosine(vector, self._vectors[row])

    def _id(self, row: int) -> str:
        start = int(self._ends[row - 1]) if row else 0
        return self._ids[start : int(self._ends[row])].tobytes().decode()

    @cached_property
    def _rows(self) -> dict[str, int]:
        """The row of each id; only searches of some paragraphs need it."""
        return {self._id(row): row for row in range(len(self._ends))}


def _best(vector: Vector, count: int, vectors: NDArray[Any]) -> list[int]:
    """At least `count` places, among them all that could be among the best so many."""
    # One thread, set here as each caller has a setting of its own: where OMP_THREAD_LIMIT or the like holds OpenMP
    # back, faiss divides the rows among threads that don't come, and finds the share of one alone.
    faiss.omp_set_num_threads(1)
    everything = len(vectors)
    limit = min(count + MARGIN, everything)
    while limit:
        # One query at a time: faiss computes several by another routine, whose last bits differ.
        scores, places = faiss.knn(vector[None], vectors, limit, metric=faiss.METRIC_INNER_PRODUCT)
        if limit == everything or is_whole(scores[0].tolist(), count):
            return [int(place) for place in places[0]]
        limit = min(4 * limit, everything)
    return []


def mapped(file: Path, kind: type[Any]) -> NDArray[Any]:
    """The numbers of a file; one without any can't be mapped."""
    return np.memmap(file, kind, "r") if file.stat().st_size else np.zeros(0, kind)


def _vectors(folder: Path, paragraphs: int) -> NDArray[Any]:
    """The embeddings, one a row; raises ValueError where some are missing."""
    flat = mapped(folder / "vectors.f32", np.float32)
    if len(flat) % max(paragraphs, 1):
        raise ValueError("embeddings are missing")
    return flat.reshape(paragraphs, len(flat) // max(paragraphs, 1))


def _build(models: Path, folder: Path, paragraphs: Iterable[Paragraph], settings: DenseSettings) -> dict[str, Any]:
    """Says how the index approximates, and how many paragraphs are longer than the model reads (`cut`)."""
    built: dict[str, Any] = {}
    sample: list[tuple[int, str]] = []
    with closing(KeptEmbeddings(folder.parents[1] / KEPT_EMBEDDINGS, models, settings.model)) as kept:
        write(folder, kept.with_each(_sampled(paragraphs, sample) if settings.recall else paragraphs), settings)
        if settings.recall and sample:
            vectors = _vectors(folder, (folder / "ends.u64").stat().st_size // array("Q").itemsize)
            queries = kept.queries([text for _, text in sample])
            built = msgspec.structs.asdict(build_lists(folder, vectors, queries, settings.recall))
    return built | ({"cut": kept.cut} if kept.cut else {})


def _sampled(paragraphs: Iterable[Paragraph], sample: list[tuple[int, str]]) -> Iterator[Paragraph]:
    """The paragraphs; sample: takes the beginnings of `MEASURED` of them, chosen by checksums."""
    for each in paragraphs:
        text = each.statement.strip()
        checked = (crc32(text.encode(errors="replace")), text[:BEGINNING])
        (heappush if len(sample) < MEASURED else heappushpop)(sample, checked)
        yield each


def write(folder: Path, embedded: Iterable[tuple[Paragraph, bytes]], settings: SimilaritySettings) -> None:
    """Writes an index of the paragraphs' words, their embeddings, and their ids in the same order."""
    (folder / "bm25").mkdir()
    TANTIVY.build(folder / "bm25", _written(folder, embedded), Bm25Settings(fields=settings.fields or {}))


def _written(folder: Path, embedded: Iterable[tuple[Paragraph, bytes]]) -> Iterator[Paragraph]:
    """The paragraphs, whose embeddings and ids are written as they pass by."""
    end = 0
    with (
        (folder / "vectors.f32").open("wb") as vectors,
        (folder / "ids.txt").open("wb") as ids,
        (folder / "ends.u64").open("wb") as ends,
    ):
        for paragraph, vector in embedded:
            vectors.write(vector)
            end += ids.write(paragraph.id.encode())
            ends.write(array("Q", [end]).tobytes())
            yield paragraph


def open_with(vectors: type[MappedVectors], models: Path, folder: Path, manifest: FolderManifest) -> HybridRetriever:
    """The index; vectors: how its embeddings are opened."""
    bm25 = msgspec.structs.replace(manifest, analyzer=TANTIVY.ranking(Bm25Settings()).analyzer)
    words = TantivyRetriever(folder / "bm25", bm25)
    return HybridRetriever(words, vectors(folder, manifest, words), manifest, models)


def dense_engine(models: Path) -> FolderEngine:
    """The engine; models: the file of the embedders that aren't built in."""
    return FolderEngine(
        name="dense",
        library="faiss-cpu",
        settings=DenseSettings,
        ranking=partial(with_model, TANTIVY.ranking(Bm25Settings()), models),
        build=partial(_build, models),
        open=partial(open_with, MappedVectors, models),
    )
