"""Workers with a model and a search of a benchmark's own. Only for modules that are a worker's app, never for tests."""

from benchmarks.costless import CostlessModel, CostlessRetriever
from cotrail.tasks.engines import LoadedEngines


def serve(generator: CostlessModel, retriever: CostlessRetriever) -> None:
    """Has this process use them, whatever model and corpus a run names."""
    LoadedEngines.load = lambda *_: generator  # type: ignore[method-assign]
    LoadedEngines.retriever = lambda *_: retriever  # type: ignore[assignment, method-assign]
