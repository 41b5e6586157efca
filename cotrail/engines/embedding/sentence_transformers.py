"""Embedders that sentence-transformers loads."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from transformers.utils import logging

from cotrail.core.ports.encoders import Comparison
from cotrail.core.ports.language_model import Profile
from cotrail.core.results import Embedded
from cotrail.engines.device_memory import in_batches
from cotrail.engines.embedding.cosine_similarity import MOST_EMBEDDINGS, Vector, embedded, texts
from cotrail.engines.model_folders import loading
from cotrail.engines.recent_results import RecentResults
from cotrail.errors import StepError

CHARACTERS_AT_ONCE = {"cuda": 262_144, "cpu": 16_384}
"""Characters that the profile `fast` reads in one pass, padding included."""


class SentenceTransformerEmbedder:
    """A model in a folder saved by sentence-transformers, on a CUDA device or otherwise the CPU, in float32.

    path, identity: its folder, and its identity.
    profile: `fast` reads texts of similar lengths together; `deterministic` reads one at a time, so that an embedding
        has the same bits whatever other comparisons are computed with it. Either may therefore cache it.
    Raises InputError, NotInstalledError.
    """

    def __init__(self, path: Path, identity: str, profile: Profile) -> None:
        self._identity = identity
        self._model = _load(path)
        self._most = CHARACTERS_AT_ONCE[self._model.device.type] if profile == "fast" else 0
        self._recent: RecentResults[str, Vector] = RecentResults()
        self._turn = Lock()

    @property
    def identity(self) -> str:
        """See `Embedder`."""
        return self._identity

    def compare(self, comparisons: Sequence[Comparison]) -> list[Embedded]:
        """See `Embedder`."""
        sentences = dict.fromkeys(text for comparison in comparisons for side in texts(comparison) for text in side)
        # The model serves one call at a time.
        with self._turn:
            vectors = self._vectors(list(sentences))
        return [embedded(comparison, vectors) for comparison in comparisons]

    def _vectors(self, sentences: list[str]) -> dict[str, Vector]:
        vectors = self._recent.known(sentences)
        vectors |= self._made([text for text in sentences if text not in vectors])
        self._recent.keep(vectors, MOST_EMBEDDINGS)
        return vectors

    def _made(self, sentences: list[str]) -> dict[str, Vector]:
        vectors: dict[str, Vector] = {}
        # By characters: how many tokens a text has is known only once it is read.
        in_batches(lambda batch: vectors.update(self._encode(batch)), sentences, len, self._most)
        return vectors

    def _encode(self, batch: list[str]) -> dict[str, Vector]:
        vectors = self._model.encode(
            batch, batch_size=len(batch), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        if not np.isfinite(vectors).all():
            raise StepError(f"{self._identity} returns values that aren't numbers: its weights are broken")
        return dict(zip(batch, vectors, strict=True))


def _load(path: Path) -> Any:
    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with loading("sentence-transformers", path):
        return SentenceTransformer(
            str(path), device=device, local_files_only=True, model_kwargs={"dtype": torch.float32}
        ).eval()
