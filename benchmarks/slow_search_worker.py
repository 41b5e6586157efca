"""App of a worker (`celery -A ...`) with a slow search and a fast model."""

import time

from benchmarks.costless import ANSWER, CostlessModel, CostlessRetriever
from benchmarks.serving import serve
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.questions import Hit
from cotrail.workers.app import app

__all__ = ["app"]

SECONDS = 0.1
"""Latency of a search, all of it waiting, like that of a server."""

FACTS = 3
"""Facts that each chain states, all of them different from other chains'."""


class SampledChains(CostlessModel):
    """Writes a different chain for each sample."""

    def write(self, request: GenerationRequest) -> str:
        """The chain of that number."""
        facts = [f"Town number {request.sampling.sample} has {number} bridges." for number in range(FACTS)]
        return " ".join([*facts, f"So the answer is: {ANSWER}."])


class SlowRetriever(CostlessRetriever):
    """Finds the same paragraphs for every query, after a delay."""

    def find(self, query: str) -> tuple[Hit, ...]:
        """All hits for a query."""
        time.sleep(SECONDS)
        return super().find(query)


serve(SampledChains(), SlowRetriever())
