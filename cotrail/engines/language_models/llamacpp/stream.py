"""What llama.cpp writes, while it is being written."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from cotrail.common.storable_text import storable
from cotrail.core.generation import Until
from cotrail.core.ports.language_model import Interrupted
from cotrail.engines.language_models.ending import STOPS, kept, watch
from cotrail.engines.language_models.result import Tokens
from cotrail.errors import StepError, TransientStepError

BAD_REQUEST = 400


class Timings(Struct, frozen=True):
    """Tokens, in llama.cpp's words: taken from the cache, read, and written."""

    cache_n: int = 0
    prompt_n: int = 0
    predicted_n: int = 0

    @property
    def tokens(self) -> Tokens:
        """The same in our words."""
        return Tokens(prompt=self.cache_n + self.prompt_n, cached=self.cache_n, generated=self.predicted_n)


class Stream:
    """Takes what the server writes and says when it is enough.

    interrupted: whether the generation is to be cut off by now.
    """

    def __init__(self, until: Until, interrupted: Callable[[], bool]) -> None:
        self.until = until
        self.text = ""
        self.timings = Timings()
        self.finished = False
        self._error: Mapping[str, Any] = {}
        self.interrupted = interrupted
        self._enough = watch(until)

    @property
    def asks(self) -> dict[str, Any]:
        """What of a request it decides."""
        return {"stop": list(STOPS[self.until])}

    def take(self, chunk: Mapping[str, Any]) -> bool:
        """The server's callback; true ends the generation."""
        if "choices" not in chunk:
            self._error = chunk.get("error", chunk)
            return True
        timings = chunk.get("timings", {})
        self.timings = Timings(**{field: timings.get(field, 0) for field in Timings.__struct_fields__})
        choice = chunk["choices"][0]
        piece = storable(choice["text"])
        self.text += piece
        self.finished = self._enough(piece) or choice["finish_reason"] is not None
        return self.finished or self.interrupted()

    def check(self) -> None:
        """Raises what kept the generation from its end; xllamacpp itself raises nothing, not even what `take` does."""
        if self.finished:
            return
        if self.interrupted():
            raise Interrupted
        message = f"llama.cpp gave up: {self._error.get('message', 'no reason known')}"
        raise StepError(message) if self._error.get("code") == BAD_REQUEST else TransientStepError(message)

    def kept(self) -> str:
        """What the step asked for, of everything that was written."""
        return kept(self.text, self.until)
