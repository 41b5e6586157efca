"""Raters that sentence-transformers loads: cross-encoders, which read both texts of a pair at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import CrossEncoder

from cotrail.common.humanize import rounded
from cotrail.core.ports.encoders import DECIMALS, Rating, second_texts
from cotrail.core.ports.language_model import Profile
from cotrail.core.results import Rated
from cotrail.engines.device_memory import DeviceReader, load_encoder
from cotrail.errors import InputError

CHARACTERS_AT_ONCE = {"cuda": 131_072, "cpu": 8192}
"""Characters that the profile `fast` reads in one pass, padding included."""

CLASSIFIER = "ForSequenceClassification"
"""How the names of architectures end that score a pair; sentence-transformers makes up the weights that others lack."""

Pair = tuple[str, str]


class CrossEncoderRater(DeviceReader[Pair, float]):
    """A classifier with one output in a folder; see `DeviceReader` and `Rater`.

    path: its folder.
    A score is what its configuration makes of the output: a probability (Quora's duplicates), or the logit itself (MS
    MARCO's relevance). Pairs that are too long are cut at their ends. Raises InputError, NotInstalledError.
    """

    def __init__(self, path: Path, identity: str, profile: Profile) -> None:
        self._model = _load(path)
        super().__init__(identity, profile, CHARACTERS_AT_ONCE[self._model.device.type])

    def rate(self, ratings: Sequence[Rating]) -> list[Rated]:
        pairs = [[(rating.text, each) for each in second_texts(rating)] for rating in ratings]
        with self._turn:
            # By characters: how many tokens a pair has is known only once it is read.
            distinct = list(dict.fromkeys(pair for each in pairs for pair in each))
            scores = self._read_all(distinct, lambda pair: len(pair[0]) + len(pair[1]), self._read)
        return [Rated(scores=tuple(scores[pair] for pair in each)) for each in pairs]

    def _read(self, batch: list[Pair]) -> list[float]:
        scores = self._model.predict(batch, batch_size=len(batch), show_progress_bar=False, convert_to_numpy=True)
        self._check(finite=bool(np.isfinite(scores).all()))
        return [rounded(float(each), DECIMALS) for each in scores]


def _load(path: Path) -> Any:
    encoder = load_encoder(CrossEncoder, path)
    architectures = encoder.config.architectures or ["nothing known"]
    if not architectures[0].endswith(CLASSIFIER):
        raise InputError(f"{path} holds no classifier of pairs, but {architectures[0]}")
    if encoder.num_labels != 1:
        raise InputError(f"{path} scores a pair by {encoder.num_labels} outputs, and a rater has one: take another one")
    return encoder
