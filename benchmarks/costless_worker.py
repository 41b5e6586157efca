"""The worker of `workers.app` with the model and the search of `benchmarks.workload` (`celery -A ...`)."""

from msgspec.structs import replace

from benchmarks import workload
from benchmarks.costless import CostlessGenerator, CostlessRetriever
from cotrail.actions import Field, Generated, Sampling, Scope, Until
from cotrail.generation.cancellation import Cancellation
from cotrail.paragraphs import Hit
from cotrail.prompting.prompt import Prompt
from models.runs import RunPlan
from tasks.station import Station
from workers.app import app

__all__ = ["app"]


class ChainGenerator(CostlessGenerator):
    """Writes each question a chain of its own."""

    def generate(
        self,
        prompt: Prompt,
        until: Until,
        max_tokens: int,
        sampling: Sampling,
        cancellation: Cancellation | None = None,
    ) -> Generated:
        """The next sentence, or the answer."""
        text = workload.sentence(prompt.question, len(prompt.sentences)) if until == "sentence" else workload.ANSWER
        return replace(super().generate(prompt, until, max_tokens, sampling, cancellation), text=text, raw=text)


class TownRetriever(CostlessRetriever):
    """Finds paragraphs that no other query finds."""

    def search(
        self,
        query: str,
        count: int,
        titles: tuple[str, ...] = (),
        *,
        scope: Scope = "only",
        field: Field = "all",
    ) -> tuple[Hit, ...]:
        """The first `count` of them."""
        return workload.search(query)[:count]


_generator, _retriever = ChainGenerator(), TownRetriever()


def _load(station: Station, name: str, profile: str) -> ChainGenerator:  # noqa: ARG001
    return _generator


def _retrieve(station: Station, run: RunPlan) -> TownRetriever:  # noqa: ARG001
    return _retriever


Station.load = _load  # type: ignore[method-assign, assignment]
Station.retriever = _retrieve  # type: ignore[method-assign, assignment]
