"""The worker of `workers.app` with a search that takes its time and a model that doesn't (`celery -A ...`)."""

import time

from benchmarks.costless import ANSWER, CostlessModel, CostlessRetriever
from benchmarks.serving import serve
from cotrail.core.paragraphs import Hit
from cotrail.core.ports.language_model import GenerationRequest
from workers.celery_app import app

__all__ = ["app"]

SECONDS = 0.1
"""How long a search takes, all of it waiting: as one of a server does."""

FACTS = 3
"""How many facts each chain states, all of them its own."""


class SampledChains(CostlessModel):
    """Writes a chain of its own for each sample."""

    def write(self, request: GenerationRequest) -> str:
        """The chain of that number."""
        facts = [f"Town number {request.sampling.sample} has {number} bridges." for number in range(FACTS)]
        return " ".join([*facts, f"So the answer is: {ANSWER}."])


class SlowRetriever(CostlessRetriever):
    """Finds the same paragraphs for every query, after a while."""

    def find(self, query: str) -> tuple[Hit, ...]:
        """All that there is to find."""
        time.sleep(SECONDS)
        return super().find(query)


serve(SampledChains(), SlowRetriever())
