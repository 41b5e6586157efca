"""What all corpora with embeddings share: their settings, how texts are embedded and kept, how they are searched."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Annotated, Any, Protocol

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from cotrail.core.ports.encoders import DECIMALS, Embedder
from cotrail.core.ports.retriever import Corpus, SearchRequest, WholeCorpus, numbered, picked
from cotrail.core.questions import Hit, Paragraph
from cotrail.engines.embedding.cosine_similarity import Vector
from cotrail.engines.embedding.embedders import EMBEDDERS
from cotrail.engines.engine_catalogue import NamedEngine
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
from cotrail.engines.retrieval.manifest import EMBEDDED_BY, IndexManifest, Ranking
from cotrail.engines.retrieval.search_server import FieldKinds, best, check_fields
from cotrail.errors import CorpusError, InputError, StepError

AT_ONCE = 256
"""Paragraphs that are embedded and kept together: what a killed build loses at most."""

MARGIN = 32
"""Hits beyond those asked for that an index is asked for: its sums differ in their last bits from recorded scores."""

LENGTH_ERROR = 1e-3
"""How far the length of an embedding may be from 1."""


class DenseSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of an index with embeddings.

    model: an embedder of `cotrail models`. retriever: how it is searched where a search doesn't say.
    rank_constant: of reciprocal rank fusion (Cormack et al. 2009): a hit of rank r in a list has 1 / (constant + r).
    fields: the metadata by which it can be filtered, and its kinds.
    recall: the share of what exact search finds that an approximate one has to find; search is exact without it.
    """

    model: str
    retriever: Way = "dense"
    rank_constant: Annotated[int, Meta(ge=0)] = 60
    recall: Annotated[float, Meta(gt=0, le=1)] | UnsetType = UNSET
    fields: FieldKinds | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_fields(self.fields or {})


def with_model(words: Ranking, models: Path, settings: DenseSettings) -> Ranking:
    """What decides results: the analyzer of words, the model with its prefixes, and the index's settings."""
    identity = EMBEDDERS.find(models, settings.model).identity()
    return msgspec.structs.replace(words, analyzer=f"{words.analyzer}{EMBEDDED_BY}{identity}")


def opened(model: NamedEngine[Embedder]) -> Embedder:
    """The embedder, in the profile that depends on no other text where the model can have that."""
    try:
        model.check_profile("deterministic")
    except InputError:  # behind a server
        return model.open("fast")
    return model.open("deterministic")


# Searches.


class VectorIndex(Protocol):
    """Embeddings of paragraphs that can be compared with a query's."""

    def nearest(
        self, vector: Vector, count: int, titles: tuple[str, ...], filter_: str
    ) -> list[tuple[float, Paragraph]]:
        """The `count` paragraphs of the highest cosines, equal ones by id.

        titles: only those of these, if any are given; filter_: only those that it lets through, all where it is empty.
        """


class HybridRetriever:
    """Searches an index of words and one of embeddings. Safe for many threads.

    models: the file of the embedders that aren't built in. The model is loaded by the first search that needs it.
    """

    def __init__(self, words: Corpus, vectors: VectorIndex, manifest: IndexManifest, models: Path) -> None:
        self.manifest = manifest
        self._words = words
        self._vectors = vectors
        self._models = models
        self._settings = msgspec.convert(manifest.settings, DenseSettings)
        self._opening = RLock()

    @property
    def revision(self) -> str:
        return self.manifest.revision

    def search(self, request: SearchRequest) -> tuple[Hit, ...]:
        """The best paragraphs; see `Retriever`.

        Similarities are cosines. Titles with the scope `only` restrict the search to their paragraphs; with `after`,
        those of these titles are kept of the best `count`. Searches of titles alone are by words.
        """
        options = request.options_as(HybridOptions)
        way: Way | Weights = "bm25" if options.field == "title" else options.retriever or self._settings.retriever
        words = msgspec.structs.replace(request, options={k: v for k, v in request.options.items() if k != "retriever"})
        if way == "bm25":
            return self._words.search(words)
        if request.count < 1 or not request.query.strip():
            return self._words.search(words)  # which looks at the filter too, and finds nothing
        after = bool(request.titles) and request.scope == "after"
        everywhere = msgspec.structs.replace(words, titles=() if after else request.titles)
        dense = partial(self._dense, everywhere)
        ranked = dense if way == "dense" else partial(self._fused, everywhere, dense, way)
        hits = best(ranked, request.count, distinct=options.distinct)
        return picked(hits, request.titles) if after else hits

    def paragraphs(self, ids: Sequence[str]) -> dict[str, Paragraph]:
        return self._words.paragraphs(ids)

    def titled(self, title: str) -> tuple[Paragraph, ...]:
        return self._words.titled(title)

    def every(self) -> Iterator[Paragraph]:
        """All paragraphs, in the order of the index; raises StepError for one on a server."""
        if not isinstance(self._words, WholeCorpus):
            raise StepError("a corpus on a search server isn't read as a whole; index its files again")
        return self._words.every()

    def _dense(self, request: SearchRequest, count: int) -> tuple[Hit, ...]:
        vector = np.asarray(self._embedder.embed([request.query], "query")[0], np.float32)
        nearest = self._vectors.nearest(vector, count, request.titles, request.options.get("filter", ""))
        return numbered(Hit(paragraph=paragraph, rank=0, score=score) for score, paragraph in nearest)

    def _fused(self, request: SearchRequest, dense: Any, way: Way | Weights, count: int) -> tuple[Hit, ...]:
        """The lists in one, each as deep as is needed."""
        depth, weights = max(count, FUSED_HITS), way if isinstance(way, dict) else None
        words = msgspec.structs.replace(request, count=depth)
        searches: dict[ListName, Any] = {"bm25": partial(self._words.search, words), "dense": partial(dense, depth)}
        lists = {name: search() for name, search in searches.items() if weights is None or name in weights}
        constant = self._settings.rank_constant
        scores = reciprocal_ranks(lists, constant) if weights is None else weighted_scores(lists, weights)
        return fused(lists, scores, count)

    @property
    def _embedder(self) -> Embedder:
        with self._opening:
            return self._opened

    @cached_property
    def _opened(self) -> Embedder:
        model = EMBEDDERS.find(self._models, self._settings.model)
        if not self.manifest.analyzer.endswith(EMBEDDED_BY + model.identity()):
            raise CorpusError(
                f"the embedder {self._settings.model} isn't the one that the corpus was indexed with; put that back, "
                "or index the corpus again"
            )
        return opened(model)


def is_whole(scores: Sequence[float], count: int) -> bool:
    """Whether no further hit can be among the best `count`; scores: about those of an index's best, in their order."""
    return len(scores) > count and scores[-1] < scores[count - 1] - 10.0**-DECIMALS


# Embeddings of paragraphs, as an index is built.


class KeptEmbeddings:
    """The embeddings of texts by one model, in a file: a second corpus, a grown one, or a build that was killed costs
    only what is new.

    folder: of all such files; models: of the user's models.
    """

    def __init__(self, folder: Path, models: Path, name: str) -> None:
        self._model = EMBEDDERS.find(models, name)
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(self._model.identity().encode()).hexdigest()[:32]
        self._file = sqlite3.connect(folder / f"{digest}.sqlite", timeout=60)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("CREATE TABLE IF NOT EXISTS kept (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def of(self, texts: Sequence[str]) -> list[bytes]:
        """The embedding of each text as 32-bit numbers; those that aren't there yet are made, and kept.

        Raises CorpusError for a model that returns what can't be compared.
        """
        digests = [hashlib.sha256(text.encode(errors="replace")).digest() for text in texts]
        marks = ", ".join("?" * len(digests))
        kept = dict(self._file.execute(f"SELECT text, vector FROM kept WHERE text IN ({marks})", digests))  # noqa: S608
        new = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in kept}
        if new:
            made = self._embedder.embed(list(new.values()), "text")
            rows = {each: self._checked(vector) for each, vector in zip(new, made, strict=True)}
            with self._file:
                self._file.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?)", rows.items())
            kept |= rows
        if len({len(vector) for vector in kept.values()}) > 1:
            raise CorpusError(f"{self._model.name} returns embeddings of several lengths; look at the model")
        return [kept[digest] for digest in digests]

    def with_each(self, paragraphs: Iterable[Paragraph]) -> Iterator[tuple[Paragraph, bytes]]:
        """Each paragraph with its embedding."""
        rest = iter(paragraphs)
        while batch := list(islice(rest, AT_ONCE)):
            yield from zip(batch, self.of([each.statement for each in batch]), strict=True)

    def _checked(self, vector: Any) -> bytes:
        numbers = np.asarray(vector, "<f4")
        if not abs(float(np.linalg.norm(numbers)) - 1) < LENGTH_ERROR:  # also where one is no number
            raise CorpusError(f"{self._model.name} returns an embedding that isn't of length 1; look at the model")
        return numbers.tobytes()

    @cached_property
    def _embedder(self) -> Embedder:
        return opened(self._model)
