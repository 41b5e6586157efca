"""Embedders that sentence-transformers loads."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from cotrail.core.ports.encoders import Comparison, Side
from cotrail.core.ports.language_model import Profile
from cotrail.core.results import Embedded
from cotrail.engines.device_memory import DeviceReader, load_encoder
from cotrail.engines.embedding.cosine_similarity import MOST_EMBEDDINGS, Vector, embedded, texts
from cotrail.engines.recent_results import RecentResults

SPECIAL = 2
"""Tokens around a text at most, as models of BERT's kind have them."""

CHARACTERS_AT_ONCE = {"cuda": 262_144, "cpu": 16_384}
"""Characters that the profile `fast` reads in one pass, padding included."""


class SentenceTransformerEmbedder(DeviceReader[str, Vector]):
    """A model in a folder saved by sentence-transformers; see `DeviceReader` and `Embedder`.

    path: its folder; prefixes: what is put before a text that is searched with, and before one that is searched for. An
    embedding is always the same, so the latest are kept. Raises InputError, NotInstalledError.
    """

    def __init__(self, path: Path, identity: str, profile: Profile, prefixes: Mapping[Side, str]) -> None:
        self._model = load_encoder(SentenceTransformer, path)
        self._prefixes = prefixes
        self._recent: RecentResults[str, Vector] = RecentResults()
        super().__init__(identity, profile, CHARACTERS_AT_ONCE[self._model.device.type])

    def compare(self, comparisons: Sequence[Comparison]) -> list[Embedded]:
        sentences = dict.fromkeys(text for comparison in comparisons for side in texts(comparison) for text in side)
        with self._turn:
            vectors = self._vectors(list(sentences))
        return [embedded(comparison, vectors) for comparison in comparisons]

    def embed(self, texts: Sequence[str], side: Side) -> Sequence[Vector]:
        marked = [self._prefixes[side] + text for text in texts]
        with self._turn:
            vectors = self._vectors(list(dict.fromkeys(marked)))
        return [vectors[text] for text in marked]

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        most, prefix = self._model.max_seq_length or sys.maxsize, self._prefixes["text"]
        # No token has less than a character, so that most texts needn't be read.
        return [
            len(prefix + text) > most - SPECIAL
            and len(self._model.tokenizer(prefix + text, verbose=False)["input_ids"]) > most
            for text in texts
        ]

    def _vectors(self, sentences: list[str]) -> dict[str, Vector]:
        vectors = self._recent.known(sentences)
        # By characters: how many tokens a text has is known only once it is read.
        vectors |= self._read_all([text for text in sentences if text not in vectors], len, self._encode)
        self._recent.keep(vectors, MOST_EMBEDDINGS)
        return vectors

    def _encode(self, batch: list[str]) -> Sequence[Vector]:
        vectors: Sequence[Vector] = self._model.encode(
            batch, batch_size=len(batch), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        self._check(finite=bool(np.isfinite(vectors).all()))
        return vectors
