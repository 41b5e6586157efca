"""Late interaction in a folder (ColBERT, Khattab and Zaharia 2020): embeddings of paragraphs' tokens, next to BM25.

An index has the files of one with texts' embeddings (`cotrail.engines.retrieval.dense`), and where each paragraph's
numbers begin. Scores are those of the rater that embeds. Each search compares its query with every token in 32 bits,
whose error is bounded, and scores once more what could be among the best.
"""

from array import array
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from cotrail.core.ports.encoders import DECIMALS
from cotrail.core.questions import Paragraph
from cotrail.engines.embedding.cosine_similarity import Vector, max_sim
from cotrail.engines.retrieval.dense import MappedVectors, dense_engine, mapped, open_with, write
from cotrail.engines.retrieval.embeddings import LENGTH_ERROR, KeptEmbeddings, LateSettings
from cotrail.engines.retrieval.engine import KEPT_EMBEDDINGS, FolderEngine

AT_ONCE = 512
"""Paragraphs that are compared at once."""


class MappedTokens(MappedVectors):
    """An embedding of each token of a text; of a query too, a row each."""

    def _opened(self, folder: Path, paragraphs: int) -> NDArray[Any]:
        numbers = mapped(folder / "vectors.f32", np.float32)
        # Where the numbers of each paragraph begin, and the last ones end; how many a token has, the query says.
        self._starts = mapped(folder / "starts.i64", np.int64)
        if len(self._starts) != paragraphs + 1 or len(numbers) != self._starts[-1]:
            raise ValueError("embeddings are missing")
        return np.asarray(numbers)

    def _candidates(self, vector: Vector, count: int, among: list[int] | None) -> Iterable[int]:
        every = np.arange(len(self._starts) - 1) if among is None else np.array(among, np.int64)
        rows, scores = every[:0], np.zeros(0)
        for first in range(0, len(every), AT_ONCE):
            block = every[first : first + AT_ONCE]
            rows, scores = np.hstack([rows, block]), np.hstack([scores, self._nearly(vector, block)])
            if len(rows) > count:
                kept = scores >= np.partition(scores, -count)[-count] - 2 * _error(vector) - 10.0**-DECIMALS
                rows, scores = rows[kept], scores[kept]
        return map(int, rows)

    def _nearly(self, vector: Vector, rows: NDArray[Any]) -> NDArray[Any]:
        """The scores of these rows, in 32 bits."""
        starts, ends, width = self._starts[rows], self._starts[rows + 1], vector.shape[1]
        if len(rows) == rows[-1] - rows[0] + 1:
            numbers = self._vectors[starts[0] : ends[-1]]
        else:
            numbers = np.concatenate([self._vectors[start:end] for start, end in zip(starts, ends, strict=True)])
        places = (np.cumsum(ends - starts) - (ends - starts)) // width
        nearest = np.maximum.reduceat(numbers.reshape(-1, width) @ vector.T, places)
        return np.asarray(nearest.sum(axis=1, dtype=np.float64))

    def _score(self, vector: Vector, row: int) -> float:
        numbers = self._vectors[self._starts[row] : self._starts[row + 1]]
        return max_sim(vector, numbers.reshape(-1, vector.shape[1]))


def _error(vector: Vector) -> float:
    """How far a score in 32 bits may be from the exact one, in whatever order it was summed (Higham 2002, 3.1)."""
    units: float = vector.shape[1] * float(np.finfo(np.float32).eps) / 2
    return float(np.linalg.norm(vector, axis=1).sum()) * (1 + LENGTH_ERROR) * units / (1 - units)


def _build(models: Path, folder: Path, paragraphs: Iterable[Paragraph], settings: LateSettings) -> dict[str, int]:
    """Says how many paragraphs are longer than the model reads (`cut`)."""
    with closing(KeptEmbeddings(folder.parents[1] / KEPT_EMBEDDINGS, models, settings.model, "late")) as kept:
        write(folder, placed(folder, kept.with_each(paragraphs)), settings)
    return {"cut": kept.cut} if kept.cut else {}


def placed(folder: Path, embedded: Iterable[tuple[Paragraph, bytes]]) -> Iterator[tuple[Paragraph, bytes]]:
    """The same, while it is written where the numbers of each paragraph begin."""
    start = 0
    with (folder / "starts.i64").open("wb") as starts:
        for paragraph, tokens in embedded:
            starts.write(array("q", [start]).tobytes())
            start += len(tokens) // np.dtype(np.float32).itemsize
            yield paragraph, tokens
        starts.write(array("q", [start]).tobytes())


def late_engine(models: Path) -> FolderEngine:
    """The engine; models: the file of the raters, of which one embeds."""
    own = {"build": partial(_build, models), "open": partial(open_with, MappedTokens, models)}
    return msgspec.structs.replace(dense_engine(models), name="late", library="numpy", settings=LateSettings, **own)
