"""The worker of `workers.app` (`celery -A ...`) with a model that some questions kill, the whole process with it."""

import os
import signal
import time

from benchmarks.costless import CostlessGenerator, CostlessRetriever
from cotrail.core.generation import Sampling, Until
from cotrail.core.ports.language_model import Generator
from cotrail.core.prompts import Prompt
from models.records.runs import RunPlan
from tasks.engines import LoadedEngines
from tests.faults.deadly import DEADLY
from workers.app import app

__all__ = ["app"]

SECONDS = 0.1
"""How long each sentence takes."""


class FrailGenerator(CostlessGenerator):
    """Writes as the costless one does, after a while in which a deadly prompt may end it."""

    def write(self, prompt: Prompt, until: Until, sampling: Sampling) -> str:
        """The next sentence, or the answer."""
        time.sleep(SECONDS)
        if DEADLY in prompt.question:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(prompt, until, sampling)


_frail, _retriever, _load = FrailGenerator(), CostlessRetriever(), LoadedEngines.load


def load(engines: LoadedEngines, name: str, profile: str) -> Generator:
    """The frail model under its name, any other as ever."""
    return _frail if name == "costless" else _load(engines, name, profile)


def retriever(engines: LoadedEngines, run: RunPlan) -> CostlessRetriever:
    """Whatever corpus a run names."""
    return _retriever


LoadedEngines.load = load  # type: ignore[method-assign, assignment]
LoadedEngines.retriever = retriever  # type: ignore[method-assign, assignment]
