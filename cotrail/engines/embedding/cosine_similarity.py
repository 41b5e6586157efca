"""How alike vectors are."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cotrail.core.ports.embedder import Comparison
from cotrail.core.results import Embedded

Vector: TypeAlias = NDArray[np.float32]
"""What a model makes of a text, of length 1."""

DECIMALS = 6
"""Those of a similarity; beyond them it depends on which machine computed it."""


def texts(comparison: Comparison) -> tuple[Sequence[str], Sequence[str]]:
    """The rows and the columns of a comparison."""
    return comparison.sentences, [each.statement for each in comparison.paragraphs] or comparison.sentences


def embedded(comparison: Comparison, vectors: Mapping[str, Vector]) -> Embedded:
    """The similarities that a comparison asks for, by the vectors of its texts."""
    rows, columns = texts(comparison)
    return Embedded(similarities=tuple(tuple(_cosine(vectors[a], vectors[b]) for b in columns) for a in rows))


def _cosine(one: Vector, other: Vector) -> float:
    """Two vectors at a time: in a product of matrices the last bits would depend on what else is in them."""
    return round(float(np.dot(one.astype(np.float64), other)), DECIMALS) + 0.0  # which makes -0.0 of none
