"""The stream of chunks that llama.cpp writes for one generation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cotrail.common.storable_text import storable
from cotrail.core.calls import Call
from cotrail.core.generation import Ended, Until, before_stop
from cotrail.core.ports.cancellation import Interrupted, Listener
from cotrail.core.written_calls import split_calls
from cotrail.engines.language_models.grammars import FREE, Grammars, Guide
from cotrail.engines.language_models.growing_text import GrowingText
from cotrail.engines.language_models.stop_conditions import kept, stop_condition, why_ended
from cotrail.engines.language_models.thoughts import ThinkingText
from cotrail.engines.language_models.token_counts import LlamaCppTimings, TokenCounts
from cotrail.errors import StepError, TransientStepError

BAD_REQUEST = 400


class LlamaCppStream:
    """Takes the server's chunks until the generation is complete.

    until, stop, scored: see `GenerationRequest`; interrupted: returns whether the generation was cancelled.
    max_tokens: the most tokens of the text, None where the request bounds them.
    written: tells thoughts from text; shown: control tokens that the server is to write as text, for it to do so.
    grammars: what the text is held to; listener: see `Cancellation`.
    scores: the text and the log probability of each token; a character of several tokens is one with the last's.
    raw: all that was written, thoughts and marks too.
    """

    def __init__(
        self,
        until: Until,
        interrupted: Callable[[], bool],
        stop: tuple[str, ...] = (),
        *,
        scored: bool = False,
        max_tokens: int | None = None,
        written: ThinkingText | None = None,
        shown: Sequence[str] = (),
        grammars: Grammars = FREE,
        listener: Listener | None = None,
    ) -> None:
        self.until = until
        self.stop = stop
        self.scored = scored
        self.written = written or ThinkingText()
        self.raw = GrowingText()
        self.scores: list[tuple[str, float]] = []
        self.timings = LlamaCppTimings()
        self.finished = False
        self._max_tokens = max_tokens
        self._shown = list(shown)
        self._listener = listener
        self._guide = Guide(grammars, self.written)
        self._turns = False
        self._counted: TokenCounts | None = None
        self._error: Mapping[str, Any] = {}
        self.interrupted = interrupted
        self._enough = stop_condition(until, stop)
        self._reason: str | None = None

    @property
    def asks(self) -> dict[str, Any]:
        """The fields of a request that it decides."""
        # The probabilities are the model's own, before the samplers.
        scores = {"n_probs": 1} if self.scored else {}
        grammar = {"grammar": self._guide.grammar} if self._guide.grammar else {}
        return scores | grammar | ({"preserved_tokens": self._shown} if self._shown else {})

    def take(self, chunk: Mapping[str, Any]) -> bool:
        """The server's callback; True ends the generation, or the part of it up to where it `pauses`."""
        # xllamacpp passes errors as chunks too.
        if "choices" not in chunk:
            self._error = chunk.get("error", chunk)
            return True
        choice = chunk["choices"][0]
        piece = storable(choice["text"])
        self.raw.add(piece)
        self._reason = choice["finish_reason"]
        text = self.written.take(piece, self._new_tokens(chunk.get("timings", {})))
        if self._reason is None and self._max_tokens is not None and self.written.text_tokens >= self._max_tokens:
            self._reason = "length"
        if self._reason is not None:
            text += self.written.end(cut=self._reason == "length")
        if text and self.scored:
            self.scores.append((text, sum(each["logprob"] for each in choice["logprobs"]["content"])))
        self.finished = self._enough(text) or self._reason is not None
        self._turns = self._guide.follow()
        if self._listener:
            self._listener(self.kept() if self.finished else self.text, self.written.thoughts)
        return self.finished or self.pauses or self.interrupted()

    def _new_tokens(self, timings: Mapping[str, int]) -> int:
        """Takes the counts of a chunk; returns how many tokens it has."""
        before = self.timings.predicted_n
        self.timings = LlamaCppTimings(**{field: timings.get(field, 0) for field in LlamaCppTimings.__struct_fields__})
        return max(0, self.timings.predicted_n - before)

    @property
    def text(self) -> str:
        """What was written so far, without thoughts."""
        return self.written.text

    @property
    def pauses(self) -> bool:
        """Return whether the rest is a request of its own: a thought takes too long, or another grammar holds."""
        return not self.finished and (self.written.is_overdue or self._turns)

    @property
    def counts(self) -> TokenCounts:
        """The token counts of the whole generation; what the engine wrote in the model's place isn't in them."""
        counts, before = self.timings.counts, self._counted
        if before:
            counts = replace(before, generated=before.generated + counts.generated)
        return replace(counts, thought=self.written.thought_tokens)

    def go_on(self) -> None:
        """Prepares for the rest behind a pause, closing a thought that takes too long in the model's place."""
        if self.written.is_overdue:
            self.raw.add(self.written.close())
            self._guide.follow()
        self._turns = False
        self._counted, self.timings = self.counts, LlamaCppTimings()

    def give_up(self) -> None:
        """Ends the generation of a model that thinks however often its thought is closed."""
        self.written.end(cut=True)
        self._reason, self.finished = "length", True

    def check(self) -> None:
        """Raises why a generation didn't complete; xllamacpp itself raises nothing, not even what `take` raises."""
        if self.finished:
            return
        if self.interrupted():
            raise Interrupted
        if self.pauses:
            return
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
