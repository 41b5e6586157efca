"""The worker of `workers.app` with a model and a search that cost nothing (`celery -A benchmarks.costless_worker`)."""

from benchmarks.costless import CostlessGenerator, CostlessRetriever
from models.runs import RunPlan
from tasks.station import Station
from workers.app import app

__all__ = ["app"]

_generator, _retriever = CostlessGenerator(), CostlessRetriever()


def _load(station: Station, name: str, profile: str) -> CostlessGenerator:  # noqa: ARG001
    return _generator


def _retrieve(station: Station, run: RunPlan) -> CostlessRetriever:  # noqa: ARG001
    return _retriever


Station.load = _load  # type: ignore[method-assign, assignment]
Station.retriever = _retrieve  # type: ignore[method-assign, assignment]
