"""The worker of `cotrail.workers.app` with a model in which certain questions kill the whole process."""

import os
import signal
import time

from benchmarks.costless import CostlessModel, CostlessRetriever
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.models.records.runs import RunPlan
from cotrail.tasks.engines import LoadedEngines
from cotrail.workers.app import app
from tests.faults.deadly import DEADLY

__all__ = ["app"]

SECONDS = 0.1
"""Seconds per sentence."""


class FrailModel(CostlessModel):
    """Writes like the costless model, after a delay; a deadly prompt kills the process."""

    def write(self, request: GenerationRequest) -> str:
        """The next sentence, or the answer."""
        time.sleep(SECONDS)
        if DEADLY in request.prompt.question:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(request)


_frail, _retriever, _load = FrailModel(), CostlessRetriever(), LoadedEngines.load


def load(engines: LoadedEngines, name: str, profile: str) -> LanguageModel:
    """Opens the frail model by its name, any other model as usual."""
    return _frail if name == "costless" else _load(engines, name, profile)


def retriever(engines: LoadedEngines, run: RunPlan, corpus: str) -> CostlessRetriever:
    """Opens the same corpus for every name."""
    return _retriever


LoadedEngines.load = load  # type: ignore[method-assign, assignment]
LoadedEngines.retriever = retriever  # type: ignore[method-assign, assignment]
