"""Workers with a model and a search of a benchmark's own. Only for modules that are a worker's app, never for tests."""

from benchmarks.costless import CostlessModel, CostlessRetriever
from tasks.station import Station


def serve(model: CostlessModel, retriever: CostlessRetriever) -> None:
    """Has this process's station use them, whatever model and corpus a run names."""
    Station.load = lambda *_: model  # type: ignore[method-assign]
    Station.retriever = lambda *_: retriever  # type: ignore[method-assign]
