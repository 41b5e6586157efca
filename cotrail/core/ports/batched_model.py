"""Port of language models that may be asked in batches."""

from typing import Protocol, runtime_checkable

from cotrail.core.ports.batches import BatchAnswer
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.results import Generated
from cotrail.errors import CotrailError


class UnusableAnswer(Exception):  # noqa: N818 - the error itself is what counts
    """There is no result in an answer, whatever is done with it: it has to be asked for again, if at all.

    error: the step's.
    """

    def __init__(self, error: CotrailError) -> None:
        super().__init__(str(error))
        self.error = error


@runtime_checkable
class TakesBatches(Protocol):
    """A language model that may be asked in batches."""

    @property
    def has_batches(self) -> bool:
        """Whether its provider offers them."""

    def batch_body(self, request: GenerationRequest) -> str:
        """The body of a line, as JSON; raises as `LanguageModel.generate` does before it has sent anything."""

    def batch_result(self, request: GenerationRequest, answer: BatchAnswer) -> Generated:
        """The result of a request by the answer to its line; raises UnusableAnswer, and as `generate` does."""
