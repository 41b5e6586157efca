"""Dense and hybrid search in a folder: embeddings of paragraphs, compared exactly with faiss, next to an index of BM25.

An index has BM25's files (`cotrail.engines.retrieval.tantivy`), the embeddings as 32-bit numbers in one file that is
mapped into memory, and the paragraphs' ids in the same order. Searches of titles alone are BM25's.
"""

import hashlib
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Annotated, Any

import faiss
import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from cotrail.core.ports.encoders import DECIMALS, Embedder
from cotrail.core.ports.retriever import SearchRequest, numbered, picked
from cotrail.core.questions import Hit, Paragraph
from cotrail.engines.embedding.cosine_similarity import cosine
from cotrail.engines.embedding.embedders import EMBEDDERS
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.retrieval.engine import FolderEngine, NoSettings
from cotrail.engines.retrieval.fusion import (
    FUSED_HITS,
    HybridOptions,
    ListName,
    Way,
    Weights,
    fused,
    reciprocal_ranks,
    weighted_scores,
)
from cotrail.engines.retrieval.manifest import FolderManifest, Ranking
from cotrail.engines.retrieval.search_server import best
from cotrail.engines.retrieval.tantivy import TANTIVY, TantivyRetriever
from cotrail.errors import CorpusError, InputError

AT_ONCE = 256
"""Paragraphs that are embedded and kept together: what a killed build loses at most."""

MARGIN = 32
"""Hits beyond those asked for that faiss is asked for: its sums differ in their last bits from the recorded scores."""


class DenseSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of an index.

    model: an embedder of `cotrail models`. retriever: how it is searched where a search doesn't say.
    rank_constant: of reciprocal rank fusion (Cormack et al. 2009): a hit of rank r in a list has 1 / (constant + r).
    """

    model: str
    retriever: Way = "dense"
    rank_constant: Annotated[int, Meta(ge=0)] = 60


class DenseRetriever:
    """Searches the index in a folder. Safe for many threads.

    models: the file of the embedders that aren't built in. The model is loaded by the first search that needs it.
    """

    def __init__(self, folder: Path, manifest: FolderManifest, models: Path) -> None:
        self.revision = manifest.revision
        self._manifest = manifest
        self._settings = msgspec.convert(manifest.settings, DenseSettings)
        bm25 = msgspec.structs.replace(manifest, analyzer=TANTIVY.ranking(NoSettings()).analyzer)
        self._bm25 = TantivyRetriever(folder / "bm25", bm25)
        self._models = models
        self._ends, self._ids = _mapped(folder / "ends.u64", np.uint64), _mapped(folder / "ids.txt", np.uint8)
        flat = _mapped(folder / "vectors.f32", np.float32)
        if len(self._ends) != manifest.paragraphs or len(flat) % max(manifest.paragraphs, 1):
            raise ValueError("embeddings are missing")
        self._vectors = flat.reshape(manifest.paragraphs, len(flat) // max(manifest.paragraphs, 1))
        self._opening = RLock()

    def search(self, request: SearchRequest) -> tuple[Hit, ...]:
        """The best paragraphs; see `Retriever`.

        Similarities are cosines. Titles with the scope `only` restrict the search to their paragraphs; with `after`,
        those of these titles are kept of the best `count`.
        """
        options = request.options_as(HybridOptions)
        way: Way | Weights = "bm25" if options.field == "title" else options.retriever or self._settings.retriever
        bm25 = msgspec.structs.replace(request, options={k: v for k, v in request.options.items() if k != "retriever"})
        if way == "bm25":
            return self._bm25.search(bm25)
        if request.count < 1 or not request.query.strip():
            return ()
        after = request.titles and request.scope == "after"
        among = None if after or not request.titles else self._rows_of(request.titles)
        dense = partial(self._dense, request.query, among=among)
        ranked = dense if way == "dense" else partial(self._fused, bm25, dense, way)
        hits = best(ranked, request.count, distinct=options.distinct)
        return picked(hits, request.titles) if after else hits

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        """The paragraphs of these ids, by id; unknown ids are left out."""
        return self._bm25.paragraphs(ids)

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        """The paragraphs of exactly this title, by id."""
        return self._bm25.titled(title)

    def _dense(self, query: str, count: int, *, among: Sequence[int] | None) -> tuple[Hit, ...]:
        """The paragraphs of the highest similarity, among those of these rows if any are given."""
        vector = np.asarray(self._embedder.embed([query], "query")[0], np.float32)
        rows = self._nearest(vector, count) if among is None else among
        return self._best({self._id(row): cosine(vector, self._vectors[row]) for row in rows}, count)

    def _best(self, scores: Mapping[str, float], count: int) -> tuple[Hit, ...]:
        """The paragraphs of the highest scores, equal ones by id; scores: by id."""
        ids = sorted(scores, key=lambda each: (-scores[each], each))[:count]
        found = self._bm25.paragraphs(ids)
        return numbered(Hit(paragraph=found[each], rank=0, score=scores[each]) for each in ids)

    def _nearest(self, vector: Any, count: int) -> list[int]:
        """At least `count` rows, among them all that could be among the best so many."""
        # One thread, set here as each caller has a setting of its own: where OMP_THREAD_LIMIT or the like holds OpenMP
        # back, faiss divides the rows among threads that don't come, and finds the share of one alone.
        faiss.omp_set_num_threads(1)
        everything = len(self._vectors)
        limit = min(count + MARGIN, everything)
        while limit:
            # One query at a time: faiss computes several by another routine, whose last bits differ.
            scores, rows = faiss.knn(vector[None], self._vectors, limit, metric=faiss.METRIC_INNER_PRODUCT)
            if limit == everything or scores[0, -1] < scores[0, count - 1] - 10.0**-DECIMALS:
                return [int(row) for row in rows[0]]
            limit = min(4 * limit, everything)
        return []

    def _fused(self, bm25: SearchRequest, dense: Any, way: Way | Weights, count: int) -> tuple[Hit, ...]:
        """The lists in one; titles were seen to by each, or are afterwards."""
        depth, weights = max(count, FUSED_HITS), way if isinstance(way, dict) else None
        titles = () if bm25.scope == "after" else bm25.titles
        words = msgspec.structs.replace(bm25, count=depth, titles=titles)
        searches: dict[ListName, Any] = {"bm25": partial(self._bm25.search, words), "dense": partial(dense, depth)}
        lists = {name: search() for name, search in searches.items() if weights is None or name in weights}
        constant = self._settings.rank_constant
        scores = reciprocal_ranks(lists, constant) if weights is None else weighted_scores(lists, weights)
        return fused(lists, scores, count)

    def _id(self, row: int) -> str:
        start = int(self._ends[row - 1]) if row else 0
        return self._ids[start : int(self._ends[row])].tobytes().decode()

    def _rows_of(self, titles: Iterable[str]) -> list[int]:
        return [self._rows[each.id] for title in dict.fromkeys(titles) for each in self._bm25.titled(title)]

    @cached_property
    def _rows(self) -> dict[str, int]:
        """The row of each id; only searches of titles need it."""
        return {self._id(row): row for row in range(len(self._ends))}

    @property
    def _embedder(self) -> Embedder:
        with self._opening:
            return self._opened

    @cached_property
    def _opened(self) -> Embedder:
        model = EMBEDDERS.find(self._models, self._settings.model)
        if ranking(self._models, self._settings).analyzer != self._manifest.analyzer:
            raise CorpusError(
                f"the embedder {self._settings.model} isn't the one that the corpus was indexed with; put that back, "
                "or index the corpus again"
            )
        return opened(model)


def _mapped(file: Path, kind: type[Any]) -> NDArray[Any]:
    """The numbers of a file; one without any can't be mapped."""
    return np.memmap(file, kind, "r") if file.stat().st_size else np.zeros(0, kind)


def opened(model: NamedEngine[Embedder]) -> Embedder:
    """The embedder, in the profile that depends on no other text where the model can have that."""
    try:
        model.check_profile("deterministic")
    except InputError:  # behind a server
        return model.open("fast")
    return model.open("deterministic")


def ranking(models: Path, settings: DenseSettings) -> Ranking:
    """What decides results: BM25's analyzer, the model with its prefixes, and the index's settings."""
    identity = EMBEDDERS.find(models, settings.model).identity()
    bm25 = TANTIVY.ranking(NoSettings())
    return msgspec.structs.replace(bm25, analyzer=f"{bm25.analyzer}; embedded by {identity}")


def _build(models: Path, folder: Path, paragraphs: Iterable[Paragraph], settings: DenseSettings) -> None:
    model = EMBEDDERS.find(models, settings.model)
    kept = folder.parents[1] / ".embeddings"
    kept.mkdir(exist_ok=True)
    name = hashlib.sha256(model.identity().encode()).hexdigest()[:32]
    (folder / "bm25").mkdir()
    with closing(KeptEmbeddings(kept / f"{name}.sqlite", model)) as embeddings:
        TANTIVY.build(folder / "bm25", _embedded(folder, paragraphs, embeddings), NoSettings())


def _embedded(folder: Path, paragraphs: Iterable[Paragraph], embeddings: "KeptEmbeddings") -> Iterator[Paragraph]:
    """The paragraphs, whose embeddings and ids are written as they pass by."""
    rest, end = iter(paragraphs), 0
    with (
        (folder / "vectors.f32").open("wb") as vectors,
        (folder / "ids.txt").open("wb") as ids,
        (folder / "ends.u64").open("wb") as ends,
    ):
        while batch := list(islice(rest, AT_ONCE)):
            for paragraph, vector in zip(batch, embeddings.of([each.statement for each in batch]), strict=True):
                vectors.write(vector)
                end += ids.write(paragraph.id.encode())
                ends.write(array("Q", [end]).tobytes())
            yield from batch


class KeptEmbeddings:
    """The embeddings of texts by one model, in a file: a second corpus, a grown one, or a build that was killed costs
    only what is new.
    """

    def __init__(self, path: Path, model: NamedEngine[Embedder]) -> None:
        self._model = model
        self._file = sqlite3.connect(path, timeout=60)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("CREATE TABLE IF NOT EXISTS kept (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def of(self, texts: Sequence[str]) -> list[bytes]:
        """The embedding of each text as 32-bit numbers; those that aren't there yet are made, and kept."""
        digests = [hashlib.sha256(text.encode(errors="replace")).digest() for text in texts]
        marks = ", ".join("?" * len(digests))
        kept = dict(self._file.execute(f"SELECT text, vector FROM kept WHERE text IN ({marks})", digests))  # noqa: S608
        new = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in kept}
        if new:
            made = self._embedder.embed(list(new.values()), "text")
            rows = {each: np.asarray(vector, "<f4").tobytes() for each, vector in zip(new, made, strict=True)}
            with self._file:
                self._file.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?)", rows.items())
            kept |= rows
        if len({len(vector) for vector in kept.values()}) > 1:
            raise CorpusError(f"{self._model.name} returns embeddings of several lengths; look at the model")
        return [kept[digest] for digest in digests]

    @cached_property
    def _embedder(self) -> Embedder:
        return opened(self._model)


def dense_engine(models: Path) -> FolderEngine:
    """The engine; models: the file of the embedders that aren't built in."""
    return FolderEngine(
        name="dense",
        library="faiss-cpu",
        settings=DenseSettings,
        ranking=partial(ranking, models),
        build=partial(_build, models),
        open=lambda folder, manifest: DenseRetriever(folder, manifest, models),
    )
