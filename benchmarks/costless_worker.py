"""App of a worker (`celery -A ...`) with the model and the retriever of `benchmarks.workload`."""

from benchmarks import workload
from benchmarks.costless import CostlessGenerator, CostlessRetriever
from benchmarks.serving import serve
from cotrail.core.generation import Sampling, Until
from cotrail.core.paragraphs import Hit
from cotrail.core.prompts import Prompt
from workers.app import app

__all__ = ["app"]


class OwnChains(CostlessGenerator):
    """Writes a different chain for each question."""

    def write(self, prompt: Prompt, until: Until, sampling: Sampling) -> str:
        """The next sentence, or the answer."""
        return workload.sentence(prompt.question, len(prompt.sentences)) if until == "sentence" else workload.ANSWER


class OwnParagraphs(CostlessRetriever):
    """Finds paragraphs that hardly any other query finds."""

    def find(self, query: str) -> tuple[Hit, ...]:
        """All hits for a query."""
        return workload.search(query)


serve(OwnChains(), OwnParagraphs())
