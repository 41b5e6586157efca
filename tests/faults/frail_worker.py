"""The worker of `workers.app` (`celery -A ...`) with a model in which certain questions kill the whole process."""

import os
import signal
import time

from benchmarks.costless import CostlessGenerator, CostlessRetriever
from cotrail.core.generation import Sampling, Until
from cotrail.core.ports.language_model import Generator
from cotrail.core.prompts import Prompt
from models.records.runs import RunPlan
from tasks.station import Station
from tests.faults.deadly import DEADLY
from workers.app import app

__all__ = ["app"]

SECONDS = 0.1
"""Seconds per sentence."""


class FrailGenerator(CostlessGenerator):
    """Writes like the costless model, after a delay; a deadly prompt kills the process."""

    def write(self, prompt: Prompt, until: Until, sampling: Sampling) -> str:
        """Writes the next sentence, or the answer."""
        time.sleep(SECONDS)
        if DEADLY in prompt.question:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(prompt, until, sampling)


_frail, _retriever, _load = FrailGenerator(), CostlessRetriever(), Station.load


def load(station: Station, name: str, profile: str) -> Generator:
    """Opens the frail model by its name, any other model as usual."""
    return _frail if name == "costless" else _load(station, name, profile)


def retriever(station: Station, run: RunPlan) -> CostlessRetriever:
    """Opens the same corpus for every name."""
    return _retriever


Station.load = load  # type: ignore[method-assign, assignment]
Station.retriever = retriever  # type: ignore[method-assign, assignment]
