"""The stream of chunks that llama.cpp writes for one generation."""

from collections.abc import Callable, Mapping
from typing import Any

from cotrail.common.storable_text import storable
from cotrail.core.calls import Call
from cotrail.core.generation import Ended, Until
from cotrail.core.ports.cancellation import Interrupted
from cotrail.engines.language_models.growing_text import GrowingText
from cotrail.engines.language_models.stop_conditions import before_stop, kept, stop_condition, why_ended
from cotrail.engines.language_models.token_counts import LlamaCppTimings
from cotrail.engines.language_models.tool_calls import split_calls
from cotrail.errors import StepError, TransientStepError

BAD_REQUEST = 400


class LlamaCppStream:
    """Takes the server's chunks until the generation is complete.

    until, stop, scored: see `GenerationRequest`; interrupted: returns whether the generation was cancelled.
    scores: the text and the log probability of each token; a character of several tokens is one with the last's.
    """

    def __init__(
        self, until: Until, interrupted: Callable[[], bool], stop: tuple[str, ...] = (), *, scored: bool = False
    ) -> None:
        self.until = until
        self.stop = stop
        self.scored = scored
        self._written = GrowingText()
        self.scores: list[tuple[str, float]] = []
        self.timings = LlamaCppTimings()
        self.finished = False
        self._error: Mapping[str, Any] = {}
        self.interrupted = interrupted
        self._enough = stop_condition(until, stop)
        self._reason: str | None = None

    @property
    def asks(self) -> dict[str, Any]:
        """The fields of a request that it decides."""
        # The probabilities are the model's own, before the samplers.
        return {"n_probs": 1} if self.scored else {}

    def take(self, chunk: Mapping[str, Any]) -> bool:
        """The server's callback; True ends the generation."""
        # xllamacpp passes errors as chunks too.
        if "choices" not in chunk:
            self._error = chunk.get("error", chunk)
            return True
        timings = chunk.get("timings", {})
        self.timings = LlamaCppTimings(**{field: timings.get(field, 0) for field in LlamaCppTimings.__struct_fields__})
        choice = chunk["choices"][0]
        piece = storable(choice["text"])
        self._written.add(piece)
        if piece and self.scored:
            self.scores.append((piece, sum(each["logprob"] for each in choice["logprobs"]["content"])))
        self._reason = choice["finish_reason"]
        self.finished = self._enough(piece) or self._reason is not None
        return self.finished or self.interrupted()

    @property
    def text(self) -> str:
        """What was written so far."""
        return self._written.text

    def check(self) -> None:
        """Raises why a generation didn't complete; xllamacpp itself raises nothing, not even what `take` raises."""
        if self.finished:
            return
        if self.interrupted():
            raise Interrupted
        message = f"llama.cpp gave up: {self._error.get('message', 'no reason known')}"
        raise StepError(message) if self._error.get("code") == BAD_REQUEST else TransientStepError(message)

    def kept(self) -> str:
        """The part of the text that the step asked for."""
        return kept(self.text, self.until, self.stop)

    def kept_beside_calls(self) -> tuple[str, tuple[Call, ...]]:
        """What the step asked for outside of calls of tools, and the calls."""
        outside, calls = split_calls(before_stop(self.text, self.stop)[0])
        return kept(outside, self.until), calls

    @property
    def ending(self) -> tuple[Ended, str]:
        """Why the text ended, and before which stop string."""
        # llama.cpp says `stop` where the model ended the text.
        otherwise: Ended = "length" if self._reason == "length" else "end"
        return why_ended(self.text, self.until, self.stop, otherwise)
