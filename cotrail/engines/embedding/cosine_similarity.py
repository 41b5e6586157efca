"""Cosine similarities of embeddings."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cotrail.core.actions.embed import Embed
from cotrail.core.results import Embedded

Vector: TypeAlias = NDArray[np.float32]
"""The embedding of a text, of length 1."""

DECIMALS = 6
"""Decimals of a similarity; further ones depend on the machine that computed it."""


def texts(action: Embed) -> tuple[Sequence[str], Sequence[str]]:
    """The texts of the rows and of the columns of an action's similarities."""
    return action.sentences, [each.statement for each in action.paragraphs] or action.sentences


def embedded(action: Embed, vectors: Mapping[str, Vector]) -> Embedded:
    """An action's similarities, by the embeddings of its texts."""
    rows, columns = texts(action)
    return Embedded(similarities=tuple(tuple(_cosine(vectors[a], vectors[b]) for b in columns) for a in rows))


def _cosine(one: Vector, other: Vector) -> float:
    """The rounded dot product of two embeddings."""
    # Two vectors at a time, since in a product of matrices the last bits of each result depend on its neighbours; and
    # in float64, whose errors the rounding removes.
    return round(float(np.dot(one.astype(np.float64), other)), DECIMALS) + 0.0  # turns -0.0 into 0.0
