"""App of a worker (`celery -A ...`) with the model and the retriever of `benchmarks.workload`."""

from benchmarks import workload
from benchmarks.costless import CostlessModel, CostlessRetriever
from benchmarks.serving import serve
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.questions import Hit
from cotrail.workers.app import app

__all__ = ["app"]


class OwnChains(CostlessModel):
    """Writes a different chain for each question."""

    def write(self, request: GenerationRequest) -> str:
        """The next sentence, or the answer."""
        prompt = request.prompt
        if request.until == "sentence":
            return workload.sentence(prompt.question, len(prompt.written))
        return workload.answer(prompt.question)


class OwnParagraphs(CostlessRetriever):
    """Finds paragraphs that hardly any other query finds."""

    def find(self, query: str) -> tuple[Hit, ...]:
        """All hits for a query."""
        return workload.search(query)


serve(OwnChains(), OwnParagraphs())
