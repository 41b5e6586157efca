"""The worker of `workers.app` with a search that takes its time and a model that doesn't (`celery -A ...`)."""

import time

from msgspec.structs import replace

from benchmarks.costless import CostlessGenerator, CostlessRetriever
from cotrail.actions import Field, Generated, Sampling, Scope, Until
from cotrail.generation.cancellation import Cancellation
from cotrail.paragraphs import Hit
from cotrail.prompting.prompt import Prompt
from models.runs import RunPlan
from tasks.station import Station
from workers.app import app

__all__ = ["app"]

SECONDS = 0.1
"""How long a search takes, all of it waiting: as one of a server does."""

FACTS = 3
"""How many facts each chain states, all of them its own."""


class ChainGenerator(CostlessGenerator):
    """Writes a chain of its own for each sample."""

    def generate(
        self,
        prompt: Prompt,
        until: Until,
        max_tokens: int,
        sampling: Sampling,
        cancellation: Cancellation | None = None,
    ) -> Generated:
        """The chain of that number."""
        facts = [f"Town number {sampling.sample} has {number} bridges." for number in range(FACTS)]
        text = " ".join([*facts, "So the answer is: Grayle."])
        return replace(super().generate(prompt, until, max_tokens, sampling, cancellation), text=text, raw=text)


class SlowRetriever(CostlessRetriever):
    """Finds the same paragraphs for every query, after a while."""

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
        time.sleep(SECONDS)
        return super().search(query, count, titles, scope=scope, field=field)


_generator, _retriever = ChainGenerator(), SlowRetriever()


def _load(station: Station, name: str, profile: str) -> ChainGenerator:  # noqa: ARG001
    return _generator


def _retrieve(station: Station, run: RunPlan) -> SlowRetriever:  # noqa: ARG001
    return _retriever


Station.load = _load  # type: ignore[method-assign, assignment]
Station.retriever = _retrieve  # type: ignore[method-assign, assignment]
