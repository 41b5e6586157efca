"""Workers with a model and a search of a benchmark's own. Only for modules that are a worker's app, never for tests."""

from benchmarks.costless import CostlessGenerator, CostlessRetriever
from tasks.runtime import Runtime


def serve(generator: CostlessGenerator, retriever: CostlessRetriever) -> None:
    """Has this process's runtime use them, whatever model and corpus a run names."""
    Runtime.load = lambda *_: generator  # type: ignore[method-assign]
    Runtime.retriever = lambda *_: retriever  # type: ignore[method-assign]
