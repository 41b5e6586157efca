"""Language model and retriever that cost nothing, so that only orchestration is measured."""

from collections.abc import Sequence

from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.ports.retriever import SearchRequest
from cotrail.core.questions import Hit, Paragraph
from cotrail.core.results import Generated

ANSWER = "Grayle"
SENTENCES = (
    "The bridge was built by one engineer.",
    "That engineer was born in one town.",
    f"So the answer is: {ANSWER}.",
)
WORDS = "The town lies where the river meets the sea, and its bridge has carried the coast road since it was built. "
PARAGRAPHS = [Paragraph(id=f"p{i}", title=f"Town number {i}", text=f"{i * i} {i}. " + WORDS * 2) for i in range(1, 5)]
HITS = tuple(Hit(paragraph=paragraph, rank=rank, score=9.0 - rank) for rank, paragraph in enumerate(PARAGRAPHS, 1))


class CostlessModel:
    """Writes a chain of three sentences and an answer."""

    identity = "costless"

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        """Return what `write` returns, at zero tokens."""
        text, prompt = self.write(request), request.prompt
        return Generated(
            text=text,
            raw=text,
            demonstrations=len(prompt.demonstrations.items),
            paragraphs=len(prompt.yielding),
            prompt_digest=prompt.digest,
            prompt_tokens=0,
            cached_prompt_tokens=0,
            generated_tokens=0,
        )

    def write(self, request: GenerationRequest) -> str:
        """The next sentence, or the answer."""
        return SENTENCES[len(request.prompt.written)] if request.until == "sentence" else ANSWER

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """The uniform distribution."""
        return (1 / len(choices),) * len(choices)

    def interrupt(self) -> None:
        """Do nothing: no generation takes long enough to be interrupted."""


class CostlessRetriever:
    """Finds the same paragraphs for every query."""

    revision = "costless"

    def search(self, request: SearchRequest) -> tuple[Hit, ...]:
        """The first `count` of them."""
        return self.find(request.query)[: request.count]

    def find(self, query: str) -> tuple[Hit, ...]:
        """All hits for a query."""
        return HITS
