"""Dense and hybrid search in a folder: embeddings of paragraphs, compared with faiss, next to an index of BM25.

An index has BM25's files (`cotrail.engines.retrieval.tantivy`), the embeddings as 32-bit numbers in one file that is
mapped into memory, and the paragraphs' ids in the same order. Where its settings ask for it, also inverted lists
(`cotrail.engines.retrieval.approximate`), without which every search compares all embeddings.
"""

from array import array
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import faiss
import msgspec
import numpy as np
from numpy.typing import NDArray

from cotrail.core.questions import Paragraph
from cotrail.engines.embedding.cosine_similarity import Vector, cosine
from cotrail.engines.retrieval import approximate
from cotrail.engines.retrieval.approximate import Approximation, Lists
from cotrail.engines.retrieval.embeddings import (
    MARGIN,
    DenseSettings,
    HybridRetriever,
    KeptEmbeddings,
    is_whole,
    with_model,
)
from cotrail.engines.retrieval.engine import KEPT_EMBEDDINGS, FolderEngine
from cotrail.engines.retrieval.manifest import FolderManifest
from cotrail.engines.retrieval.tantivy import TANTIVY, Bm25Settings, TantivyRetriever


class MappedVectors:
    """The embeddings in a folder; see `VectorIndex`. Raises ValueError where some are missing."""

    def __init__(self, folder: Path, manifest: FolderManifest, words: TantivyRetriever) -> None:
        self._words = words
        self._ends, self._ids = _mapped(folder / "ends.u64", np.uint64), _mapped(folder / "ids.txt", np.uint8)
        self._vectors = _vectors(folder, manifest.paragraphs)
        if len(self._ends) != manifest.paragraphs:
            raise ValueError("embeddings are missing")
        about = msgspec.convert(manifest.built, Approximation) if manifest.built else None
        self._lists = Lists(folder, about, manifest.paragraphs) if about else None

    def nearest(
        self, vector: Vector, count: int, titles: tuple[str, ...], filter_: str
    ) -> list[tuple[float, Paragraph]]:
        if titles or filter_:
            rows = [self._rows[each] for each in self._words.among(titles, filter_)]
        else:
            rows = self._lists.candidates(vector, count) if self._lists else self._nearest(vector, count)
        scores = {self._id(row): cosine(vector, self._vectors[row]) for row in rows}
        ids = sorted(scores, key=lambda each: (-scores[each], each))[:count]
        found = self._words.paragraphs(ids)
        return [(scores[each], found[each]) for each in ids]

    def _nearest(self, vector: Vector, count: int) -> list[int]:
        """At least `count` rows, among them all that could be among the best so many."""
        # One thread, set here as each caller has a setting of its own: where OMP_THREAD_LIMIT or the like holds OpenMP
        # back, faiss divides the rows among threads that don't come, and finds the share of one alone.
        faiss.omp_set_num_threads(1)
        everything = len(self._vectors)
        limit = min(count + MARGIN, everything)
        while limit:
            # One query at a time: faiss computes several by another routine, whose last bits differ.
            scores, rows = faiss.knn(vector[None], self._vectors, limit, metric=faiss.METRIC_INNER_PRODUCT)
            if limit == everything or is_whole(scores[0].tolist(), count):
                return [int(row) for row in rows[0]]
            limit = min(4 * limit, everything)
        return []

    def _id(self, row: int) -> str:
        start = int(self._ends[row - 1]) if row else 0
        return self._ids[start : int(self._ends[row])].tobytes().decode()

    @cached_property
    def _rows(self) -> dict[str, int]:
        """The row of each id; only searches of some paragraphs need it."""
        return {self._id(row): row for row in range(len(self._ends))}


def _mapped(file: Path, kind: type[Any]) -> NDArray[Any]:
    """The numbers of a file; one without any can't be mapped."""
    return np.memmap(file, kind, "r") if file.stat().st_size else np.zeros(0, kind)


def _vectors(folder: Path, paragraphs: int) -> NDArray[Any]:
    """The embeddings, one a row; raises ValueError where some are missing."""
    flat = _mapped(folder / "vectors.f32", np.float32)
    if len(flat) % max(paragraphs, 1):
        raise ValueError("embeddings are missing")
    return flat.reshape(paragraphs, len(flat) // max(paragraphs, 1))


def _build(
    models: Path, folder: Path, paragraphs: Iterable[Paragraph], settings: DenseSettings
) -> Approximation | None:
    (folder / "bm25").mkdir()
    with closing(KeptEmbeddings(folder.parents[1] / KEPT_EMBEDDINGS, models, settings.model)) as kept:
        TANTIVY.build(folder / "bm25", _embedded(folder, paragraphs, kept), Bm25Settings(fields=settings.fields or {}))
    count = (folder / "ends.u64").stat().st_size // array("Q").itemsize
    return approximate.build(folder, _vectors(folder, count), settings.recall) if settings.recall and count else None


def _embedded(folder: Path, paragraphs: Iterable[Paragraph], kept: KeptEmbeddings) -> Iterator[Paragraph]:
    """The paragraphs, whose embeddings and ids are written as they pass by."""
    end = 0
    with (
        (folder / "vectors.f32").open("wb") as vectors,
        (folder / "ids.txt").open("wb") as ids,
        (folder / "ends.u64").open("wb") as ends,
    ):
        for paragraph, vector in kept.with_each(paragraphs):
            vectors.write(vector)
            end += ids.write(paragraph.id.encode())
            ends.write(array("Q", [end]).tobytes())
            yield paragraph


def _open(models: Path, folder: Path, manifest: FolderManifest) -> HybridRetriever:
    bm25 = msgspec.structs.replace(manifest, analyzer=TANTIVY.ranking(Bm25Settings()).analyzer)
    words = TantivyRetriever(folder / "bm25", bm25)
    return HybridRetriever(words, MappedVectors(folder, manifest, words), manifest, models)


def dense_engine(models: Path) -> FolderEngine:
    """The engine; models: the file of the embedders that aren't built in."""
    return FolderEngine(
        name="dense",
        library="faiss-cpu",
        settings=DenseSettings,
        ranking=partial(with_model, TANTIVY.ranking(Bm25Settings()), models),
        build=partial(_build, models),
        open=partial(_open, models),
    )
