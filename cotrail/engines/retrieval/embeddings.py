"""What all corpora with embeddings share: their settings, how texts are embedded and kept, how they are searched."""

import hashlib
import sqlite3
from base64 import b64decode
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Annotated, Any, Literal, Protocol

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from cotrail.core.ports.encoders import DECIMALS, Embeds, KnowsLength
from cotrail.core.ports.language_model import Profile
from cotrail.core.ports.retriever import Corpus, SearchRequest, WholeCorpus, numbered, picked
from cotrail.core.questions import Hit, Paragraph
from cotrail.engines.embedding.cosine_similarity import Vector
from cotrail.engines.embedding.embedders import EMBEDDERS
from cotrail.engines.engine_catalogue import NamedEngine
from cotrail.engines.rating.raters import RATERS, LateInteraction
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
from cotrail.engines.retrieval.manifest import EMBEDDED_BY, IndexManifest, Ranking, Similarity, similarity_of
from cotrail.engines.retrieval.search_server import FieldKinds, best, check_fields
from cotrail.errors import CorpusError, InputError, StepError, UnknownNameError

AT_ONCE = 256
"""Paragraphs that are embedded and kept together: what a killed build loses at most."""

MARGIN = 32
"""Hits beyond those asked for that an index is asked for: its sums differ in their last bits from recorded scores."""

LENGTH_ERROR = 1e-3
"""How far the length of an embedding may be from 1."""


class SimilaritySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of an index with embeddings.

    model: of `cotrail models`. retriever: how it is searched where a search doesn't say.
    rank_constant: of reciprocal rank fusion (Cormack et al. 2009): a hit of rank r in a list has 1 / (constant + r).
    fields: the metadata by which it can be filtered, and its kinds.
    """

    model: str
    retriever: Way
    rank_constant: Annotated[int, Meta(ge=0)] = 60
    fields: FieldKinds | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_fields(self.fields or {})


class DenseSettings(SimilaritySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With embeddings of texts.

    recall: the share of what exact search finds that an approximate one has to find; search is exact without it.
    """

    retriever: Literal["bm25", "dense", "hybrid"] = "dense"
    recall: Annotated[float, Meta(gt=0, le=1)] | UnsetType = UNSET


class LateSettings(SimilaritySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With embeddings of tokens; `late` names the model."""

    model: str = msgspec.field(name="late")
    retriever: Literal["bm25", "late", "hybrid"] = "late"


SETTINGS: dict[Similarity, type[SimilaritySettings]] = {"dense": DenseSettings, "late": LateSettings}


def find_model(kind: Similarity, models: Path, name: str) -> NamedEngine[Embeds]:
    """The model that embeds; raises UnknownNameError, NotInstalledError, and InputError for one of another kind."""
    taken = '`--dense` takes an embedder, and `--late` a table [raters.NAME] with engine = "late-interaction"'
    catalogue, other = (EMBEDDERS, RATERS) if kind == "dense" else (RATERS, EMBEDDERS)
    try:
        found: NamedEngine[Any] = catalogue.find(models, name)
    except UnknownNameError:
        if name not in other.all(models):
            raise
        raise InputError(f"{name} is one of the {other.kind}s, and no {catalogue.kind}: {taken}") from None
    if kind == "late" and not isinstance(found.engine, LateInteraction):
        raise InputError(f"the rater {name} embeds no tokens: {taken}")
    return found


def with_model(words: Ranking, models: Path, settings: SimilaritySettings) -> Ranking:
    """What decides results: the analyzer of words, the model with its prefixes, and the index's settings."""
    kind: Similarity = "late" if isinstance(settings, LateSettings) else "dense"
    identity = find_model(kind, models, settings.model).identity()
    return msgspec.structs.replace(words, analyzer=f"{words.analyzer}{EMBEDDED_BY[kind]}{identity}")


def profile_of(model: NamedEngine[Embeds]) -> Profile:
    """The profile that depends on no other text, where the model can have that."""
    try:
        model.check_profile("deterministic")
    except InputError:  # behind a server
        return "fast"
    return "deterministic"


# Searches.


class VectorIndex(Protocol):
    """Embeddings of paragraphs that can be compared with a query's."""

    def nearest(
        self, vector: Vector, count: int, titles: tuple[str, ...], filter_: str
    ) -> list[tuple[float, Paragraph]]:
        """The `count` paragraphs of the highest cosines, or MaxSim where tokens are embedded, equal ones by id.

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
        self._kind: Similarity = similarity_of(manifest.analyzer) or "dense"
        self._settings = msgspec.convert(manifest.settings, SETTINGS[self._kind])
        self._opening = RLock()

    @property
    def revision(self) -> str:
        return self.manifest.revision

    def search(self, request: SearchRequest) -> tuple[Hit, ...]:
        """The best paragraphs; see `Retriever`.

        Similarities are cosines, or MaxSim. Titles with the scope `only` restrict the search to their paragraphs; with
        `after`, those of these titles are kept of the best `count`. Searches of titles alone are by words.
        """
        options = request.options_as(HybridOptions)
        way: Way | Weights = "bm25" if options.field == "title" else options.retriever or self._settings.retriever
        if unknown := ({*way} if isinstance(way, dict) else {way}) - {"bm25", self._kind, "hybrid"}:
            raise StepError(
                f"an option of the search can't be used: the corpus isn't indexed for {min(unknown)}, but for bm25, "
                f"{self._kind} and hybrid"
            )
        words = msgspec.structs.replace(request, options={k: v for k, v in request.options.items() if k != "retriever"})
        if way == "bm25":
            return self._words.search(words)
        if request.count < 1 or not request.query.strip():
            return self._words.search(words)  # which looks at the filter too, and finds nothing
        after = bool(request.titles) and request.scope == "after"
        everywhere = msgspec.structs.replace(words, titles=() if after else request.titles)
        similar = partial(self._similar, everywhere)
        ranked = similar if way == self._kind else partial(self._fused, everywhere, similar, way)
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

    def _similar(self, request: SearchRequest, count: int) -> tuple[Hit, ...]:
        vector = np.asarray(self._embedder.embed([request.query], "query")[0], np.float32)
        nearest = self._vectors.nearest(vector, count, request.titles, request.options.get("filter", ""))
        return numbered(Hit(paragraph=paragraph, rank=0, score=score) for score, paragraph in nearest)

    def _fused(self, request: SearchRequest, near: Any, way: Way | Weights, count: int) -> tuple[Hit, ...]:
        """The lists in one, each as deep as is needed."""
        depth, weights = max(count, FUSED_HITS), way if isinstance(way, dict) else None
        words = msgspec.structs.replace(request, count=depth)
        searches: dict[ListName, Any] = {"bm25": partial(self._words.search, words), self._kind: partial(near, depth)}
        lists = {name: search() for name, search in searches.items() if weights is None or name in weights}
        constant = self._settings.rank_constant
        scores = reciprocal_ranks(lists, constant) if weights is None else weighted_scores(lists, weights)
        return fused(lists, scores, count)

    @property
    def _embedder(self) -> Embeds:
        with self._opening:
            return self._opened

    @cached_property
    def _opened(self) -> Embeds:
        model = find_model(self._kind, self._models, self._settings.model)
        if not self.manifest.analyzer.endswith(EMBEDDED_BY[self._kind] + model.identity()):
            raise CorpusError(
                f"the model {self._settings.model} isn't the one that the corpus was indexed with; put that back, "
                "or index the corpus again"
            )
        return model.open(profile_of(model))


def is_whole(scores: Sequence[float], count: int) -> bool:
    """Whether no further hit can be among the best `count`; scores: about those of an index's best, in their order."""
    return len(scores) > count and scores[-1] < scores[count - 1] - 10.0**-DECIMALS


# Embeddings of paragraphs, as an index is built.


class KeptEmbeddings:
    """The embeddings of texts, or of their tokens, by one model, in a file: a second corpus, a grown one, or a build
    that was killed costs only what is new.

    folder: of all such files; models: of the user's models. cut: how many of the texts that were asked for are longer
    than the model reads, so that only their beginnings count.
    """

    cut = 0

    def __init__(self, folder: Path, models: Path, name: str, kind: Similarity = "dense") -> None:
        self._model, self._kind = find_model(kind, models, name), kind
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(self._model.identity().encode()).hexdigest()[:32]
        # An embedder and a rater may have a name and a folder in common.
        self._file = sqlite3.connect(folder / f"{digest}{'' if kind == 'dense' else f'-{kind}'}.sqlite", timeout=60)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("CREATE TABLE IF NOT EXISTS kept (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
        self._file.execute("CREATE TABLE IF NOT EXISTS cut (text BLOB PRIMARY KEY) WITHOUT ROWID")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def of(self, texts: Sequence[str]) -> list[bytes]:
        """The embedding of each text, or of its tokens, as 32-bit numbers; those not there yet are made and kept.

        Raises CorpusError for a model that returns what can't be compared.
        """
        digests = list(map(_digest, texts))
        kept = self._found("SELECT text, vector FROM kept", digests)
        new = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in kept}
        if new:
            made = self._embedder.embed(list(new.values()), "text")
            cut = self._embedder.are_cut(list(new.values())) if isinstance(self._embedder, KnowsLength) else ()
            kept |= self.keep(list(new.values()), made, np.flatnonzero(cut))
        if self._kind == "dense" and len({len(vector) for vector in kept.values()}) > 1:
            raise CorpusError(f"{self._model.name} returns embeddings of several lengths; look at the model")
        longer = self._found("SELECT text, text FROM cut", digests)
        self.cut += sum(each in longer for each in digests)
        return [kept[digest] for digest in digests]

    def queries(self, texts: Sequence[str]) -> Any:
        """The embeddings of texts that are searched with, one a row; they aren't kept."""
        return np.asarray(self._embedder.embed(texts, "query"), np.float32)

    def lacks(self, texts: Sequence[str]) -> bool:
        """Whether the embedding of one of these texts isn't there."""
        return len(self._found("SELECT text, NULL FROM kept", {*map(_digest, texts)})) < len({*texts})

    def keep(self, texts: Sequence[str], vectors: Sequence[Any], cut: Iterable[int]) -> dict[bytes, bytes]:
        """Keep the embeddings of texts: arrays, or what steps record (`Embedded`). See `of`.

        cut: the places of those texts that are longer than the model reads.
        """
        digests = list(map(_digest, texts))
        rows = {each: self._checked(vector) for each, vector in zip(digests, vectors, strict=True)}
        with self._file:
            self._file.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?)", rows.items())
            self._file.executemany("INSERT OR IGNORE INTO cut VALUES (?)", [(digests[each],) for each in cut])
        return rows

    def _found(self, selection: str, digests: Collection[bytes]) -> dict[bytes, Any]:
        marks = ", ".join("?" * len(digests))
        return dict(self._file.execute(f"{selection} WHERE text IN ({marks})", list(digests)))

    def with_each(self, paragraphs: Iterable[Paragraph]) -> Iterator[tuple[Paragraph, bytes]]:
        """Each paragraph with its embedding."""
        rest = iter(paragraphs)
        while batch := list(islice(rest, AT_ONCE)):
            yield from zip(batch, self.of([each.statement for each in batch]), strict=True)

    def _checked(self, vector: Any) -> bytes:
        numbers = np.frombuffer(b64decode(vector), "<f4") if isinstance(vector, str) else np.asarray(vector, "<f4")
        lengths = np.linalg.norm(numbers, axis=-1)
        if not lengths.size or not (abs(lengths - 1) < LENGTH_ERROR).all():  # also where one is no number
            raise CorpusError(f"{self._model.name} returns an embedding that isn't of length 1; look at the model")
        return numbers.tobytes()

    @cached_property
    def _embedder(self) -> Embeds:
        return self._model.open(profile_of(self._model))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()
