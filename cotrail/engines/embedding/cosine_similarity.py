"""Similarities of embeddings: cosines of texts' own, and MaxSim of their tokens'."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cotrail.common.humanize import rounded
from cotrail.core.ports.encoders import DECIMALS, Comparison
from cotrail.core.results import Embedded

Vector: TypeAlias = NDArray[np.float32]
"""The embedding of a text, of length 1."""

MOST_EMBEDDINGS = 16_384
"""The most embeddings that an embedder keeps: 50 MB with all-mpnet-base-v2. The same paragraphs are found again and
again."""


def texts(comparison: Comparison) -> tuple[Sequence[str], Sequence[str]]:
    """The texts of the rows and of the columns of a comparison's similarities."""
    if not comparison.sentences:
        return (), ()
    return comparison.sentences, [each.statement for each in comparison.paragraphs] or comparison.sentences


def embedded(comparison: Comparison, vectors: Mapping[str, Vector]) -> Embedded:
    """A comparison's similarities, by the embeddings of its texts."""
    rows, columns = texts(comparison)
    return similarities([vectors[text] for text in rows], [vectors[text] for text in columns])


def similarities(rows: Sequence[Vector], columns: Sequence[Vector]) -> Embedded:
    """The similarity of each row to each column."""
    return Embedded(similarities=tuple(tuple(cosine(one, other) for other in columns) for one in rows))


def cosine(one: Vector, other: Vector) -> float:
    """The rounded dot product of two embeddings."""
    # Two vectors at a time, since in a product of matrices the last bits of each result depend on its neighbours; and
    # in float64, whose errors the rounding removes.
    return rounded(float(np.dot(one.astype(np.float64), other)), DECIMALS)


def max_sim(query: NDArray[Any], text: NDArray[Any]) -> float:
    """The sum, over a query's tokens, of the highest dot product with a token of the text, rounded; tokens are rows."""
    return rounded(float((query.astype(np.float64) @ text.astype(np.float64).T).max(axis=1).sum()), DECIMALS)
