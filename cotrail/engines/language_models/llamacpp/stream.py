"""The stream of chunks that llama.cpp writes for one generation."""

from collections.abc import Callable, Mapping
from typing import Any

from cotrail.common.storable_text import storable
from cotrail.core.generation import Until
from cotrail.core.ports.language_model import Interrupted
from cotrail.engines.language_models.result import LlamaCppTimings
from cotrail.engines.language_models.stop_conditions import STOP_STRINGS, kept, stop_condition
from cotrail.errors import StepError, TransientStepError

BAD_REQUEST = 400


class LlamaCppStream:
    """Takes the server's chunks until the generation is complete.

    interrupted: returns whether the generation was cancelled.
    """

    def __init__(self, until: Until, interrupted: Callable[[], bool]) -> None:
        self.until = until
        self.text = ""
        self.timings = LlamaCppTimings()
        self.finished = False
        self._error: Mapping[str, Any] = {}
        self.interrupted = interrupted
        self._enough = stop_condition(until)

    @property
    def asks(self) -> dict[str, Any]:
        """The fields of a request that it decides."""
        return {"stop": list(STOP_STRINGS[self.until])}

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
        self.text += piece
        self.finished = self._enough(piece) or choice["finish_reason"] is not None
        return self.finished or self.interrupted()

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
        return kept(self.text, self.until)
