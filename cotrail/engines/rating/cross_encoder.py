"""Raters that sentence-transformers loads: cross-encoders, which read both texts of a pair at once."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from transformers.utils import logging

from cotrail.common.humanize import rounded
from cotrail.core.ports.encoders import DECIMALS, Rating, second_texts
from cotrail.core.ports.language_model import Profile
from cotrail.core.results import Rated
from cotrail.engines.device_memory import in_batches
from cotrail.engines.model_folders import loading
from cotrail.errors import InputError, StepError

CHARACTERS_AT_ONCE = {"cuda": 131_072, "cpu": 8192}
"""Characters that the profile `fast` reads in one pass, padding included."""

CLASSIFIER = "ForSequenceClassification"
"""How the names of architectures end that score a pair; sentence-transformers makes up the weights that others lack."""

Pair = tuple[str, str]


class CrossEncoderRater:
    """A classifier with one output in a folder, on a CUDA device or otherwise the CPU, in float32.

    path, identity: its folder, and its identity.
    profile: `fast` reads pairs of similar lengths together; `deterministic` reads one at a time, so that its scores
        have the same bits whatever other pairs are computed with it.
    A score is what its configuration makes of the output: a probability (Quora's duplicates), or the logit itself (MS
    MARCO's relevance). Pairs that are too long are cut at their ends. Raises InputError, NotInstalledError.
    """

    def __init__(self, path: Path, identity: str, profile: Profile) -> None:
        self._identity = identity
        self._model = _load(path)
        self._most = CHARACTERS_AT_ONCE[self._model.device.type] if profile == "fast" else 0
        self._turn = Lock()

    @property
    def identity(self) -> str:
        """See `Rater`."""
        return self._identity

    def rate(self, ratings: Sequence[Rating]) -> list[Rated]:
        """See `Rater`."""
        pairs = [[(rating.text, each) for each in second_texts(rating)] for rating in ratings]
        with self._turn:
            scores = self._scores(list(dict.fromkeys(pair for each in pairs for pair in each)))
        return [Rated(scores=tuple(scores[pair] for pair in each)) for each in pairs]

    def _scores(self, pairs: list[Pair]) -> dict[Pair, float]:
        scores: dict[Pair, float] = {}

        def work(batch: list[Pair]) -> None:
            scores.update(zip(batch, self._read(batch), strict=True))

        # By characters: how many tokens a pair has is known only once it is read.
        in_batches(work, pairs, lambda pair: len(pair[0]) + len(pair[1]), self._most)
        return scores

    def _read(self, batch: list[Pair]) -> list[float]:
        scores = self._model.predict(batch, batch_size=len(batch), show_progress_bar=False, convert_to_numpy=True)
        if not np.isfinite(scores).all():
            raise StepError(f"{self._identity} returns values that aren't numbers: its weights are broken")
        return [rounded(float(each), DECIMALS) for each in scores]


def _load(path: Path) -> Any:
    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with loading("sentence-transformers", path):
        encoder = CrossEncoder(
            str(path), device=device, local_files_only=True, model_kwargs={"dtype": torch.float32}
        ).eval()
    architectures = encoder.config.architectures or ["nothing known"]
    if not architectures[0].endswith(CLASSIFIER):
        raise InputError(f"{path} holds no classifier of pairs, but {architectures[0]}")
    if encoder.num_labels != 1:
        raise InputError(f"{path} scores a pair by {encoder.num_labels} outputs, and a rater has one: take another one")
    return encoder
