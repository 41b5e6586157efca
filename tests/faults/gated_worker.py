"""The worker of `cotrail.workers.app` with models that write a word, some of them once a test lets them."""

import os
import threading
from pathlib import Path

from benchmarks.costless import CostlessModel
from cotrail.configuration.settings import settings
from cotrail.core.ports.cancellation import Interrupted
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.tasks.engines import LoadedEngines
from cotrail.workers.app import app

__all__ = ["app"]

GATED = ("slow", "other")
"""The models that wait: each text for a byte in the pipe `gate`."""


ENDLESS = "endless"
"""The model that waits until it is interrupted."""


class NotingModel(CostlessModel):
    """Notes its name in the file `begun` as it begins a text."""

    def __init__(self, name: str) -> None:
        self.identity = name
        self._interrupted = threading.Event()

    def write(self, request: GenerationRequest) -> str:
        """The next sentence, or the answer."""
        with _path("begun").open("a") as begun:
            begun.write(f"{self.identity}\n")
        if self.identity in GATED:
            gate = os.open(_path("gate"), os.O_RDONLY)
            os.read(gate, 1)
            os.close(gate)
        if self.identity == ENDLESS:
            self._interrupted.wait()
            raise Interrupted
        return super().write(request)

    def interrupt(self) -> None:
        """Cut off what is being written."""
        self._interrupted.set()


def load(engines: LoadedEngines, name: str, profile: str) -> LanguageModel:
    """Opens such a model by any name."""
    opened = engines._language_models  # what a worker that is told to end interrupts
    return opened.setdefault((name, profile), NotingModel(name))


def _path(name: str) -> Path:
    return settings().home / name


LoadedEngines.load = load  # type: ignore[method-assign, assignment]
