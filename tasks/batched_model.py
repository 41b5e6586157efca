"""Language models that are asked in batches: a step's request is handed over, and its answer taken another time.

The step is carried out anew once the answer is there, and finds it in place of its request; if it then asks again, that
is a request of its own.
"""

from collections.abc import Iterator, Sequence

import msgspec

from cotrail.core.ports.batched_model import TakesBatches
from cotrail.core.ports.batches import BatchAnswer
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.core.results import Generated


class AwaitsBatch(Exception):  # noqa: N818 - control flow, not a failure
    """A step can't go on before a batch has answered its request; body: that request, as JSON."""

    def __init__(self, model_name: str, body: str) -> None:
        super().__init__(f"the step waits for a batch to {model_name}")
        self.model_name = model_name
        self.body = body


class BatchedModel:
    """A language model for one step.

    answers: those to the step's earlier requests, as JSON, in the order in which it makes them again.
    """

    def __init__(self, model: LanguageModel, takes: TakesBatches, name: str, answers: Iterator[str]) -> None:
        self._model = model
        self._takes = takes
        self._name = name
        self._answers = answers

    @property
    def identity(self) -> str:
        """See `LanguageModel`."""
        return self._model.identity

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:  # noqa: ARG002
        """See `LanguageModel`; raises AwaitsBatch where there is no answer yet."""
        answer = next(self._answers, None)
        if answer is None:
            raise AwaitsBatch(self._name, self._takes.batch_body(request))
        return self._takes.batch_result(request, msgspec.json.decode(answer, type=BatchAnswer))

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """See `LanguageModel`; they are asked for at once, since batches have none."""
        return self._model.probabilities(text, choices)

    def interrupt(self) -> None:
        """See `LanguageModel`."""
        self._model.interrupt()


def batched(model: LanguageModel, name: str, answers: Iterator[str]) -> LanguageModel:
    """The model as it is asked in batches, or as it is where its provider offers none."""
    if isinstance(model, TakesBatches) and model.has_batches:
        return BatchedModel(model, model, name, answers)
    return model
