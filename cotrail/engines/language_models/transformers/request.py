"""Request of the scheduler: a prompt, and the state of its continuation."""

from collections.abc import Sequence
from concurrent.futures import Future
from functools import cached_property

import torch

from cotrail.core.generation import Ended, Sampling, Until
from cotrail.core.ports.cancellation import Cancellation
from cotrail.engines.language_models.stop_conditions import kept, stop_condition, why_ended
from cotrail.engines.language_models.thoughts import ThinkingText
from cotrail.engines.language_models.transformers.drafting import LONGEST_PREDICTED, lookup, packed
from cotrail.engines.language_models.transformers.sampling import Constraint, Sampler, log_probability
from cotrail.engines.language_models.transformers.vocabulary import Vocabulary


class Request:
    """A prompt, what is written behind it, and the future that is resolved when it is complete.

    tokens: the whole prompt; shared: how many of its first tokens, the demonstrations, others are expected to share.
    chain: the question and the sentences so far, a line each, where another sentence may be asked for; otherwise empty.
    thinking: takes what is written, and tells thoughts from text; shown: the control tokens that it is to see.
    constraint: holds the text to a form, if set.
    until, stop: where it ends; scored: whether the log probability of each token is asked for.
    joined: whether the text is shown as it stands behind the prompt, with the blank that it may begin with.
    written: the tokens so far; forced: how many of them the engine wrote. cached, drafted, accepted: as in `Generated`.
    predicted: the tokens that are expected, as far as known; rest_of: the request that this one continues.
    cancellation: cancels this request, if set.
    """

    def __init__(
        self,
        tokens: list[int],
        vocabulary: Vocabulary,
        until: Until,
        max_tokens: int,
        sampling: Sampling,
        shared: int = 0,
        chain: str = "",
        *,
        stop: tuple[str, ...] = (),
        scored: bool = False,
        joined: bool = False,
        thinking: ThinkingText | None = None,
        shown: Sequence[str] = (),
        constraint: Constraint | None = None,
    ) -> None:
        self.tokens = tokens
        self.until = until
        self.stop = stop
        self.scored = scored
        self.max_tokens = max_tokens
        self.sampling = sampling
        self.shared = shared
        self.chain = chain
        self.vocabulary = vocabulary
        self.sampler = Sampler(sampling, lambda: [*self.tokens, *self.written], constraint)
        self.thinking = thinking or ThinkingText()
        self.written: list[int] = []
        self.forced = 0
        self.predicted: list[int] = []
        self.rest_of: Request | None = None
        self.cancellation: Cancellation | None = None
        self.cached = self.drafted = self.accepted = 0
        self.future: Future[None] = Future()
        self._shown = shown
        self._decoded = vocabulary.written(tokens if joined else (), shown)
        self._scores: list[tuple[str, float]] = []
        self._enough = stop_condition(until, stop)
        self._constraint = constraint

    @property
    def cancelled(self) -> bool:
        """Return whether the request was cancelled."""
        return self.cancellation is not None and self.cancellation.cancelled

    @cached_property
    def packed(self) -> bytes:
        """The prompt's tokens, see `drafting.packed`."""
        return packed(self.tokens)

    @property
    def text(self) -> str:
        """The whole text; of a line, the part before its end."""
        text = self.thinking.text
        return text.partition("\n")[0] if self.until == "line" else text

    @property
    def kept(self) -> str:
        """The part of the text that the step asked for."""
        return kept(self.text, self.until, self.stop)

    @property
    def scores(self) -> list[tuple[str, float]]:
        """The text and the log probability of each token of the text, for a request that is scored.

        A character of several tokens stands with its last one. The token that ended the text isn't in it, unless it has
        a part of it: then that part.
        """
        shown, left = [], len(self.text)
        for text, score in self._scores:
            shown.append((text[:left], score))
            left -= len(text)
        return shown

    @property
    def ending(self) -> tuple[Ended, str]:
        """Why the text ended, and before which stop string; for a request that is done."""
        otherwise: Ended = "end" if self.vocabulary.ends.intersection(self.written[-1:]) else "length"
        return why_ended(self.thinking.text, self.until, self.stop, otherwise)

    @cached_property
    def next_chain(self) -> str:
        """The chain with the kept sentence added; for a request that is done."""
        return f"{self.chain}\n{self.kept}"

    def draft(self) -> list[int]:
        """A draft of the next tokens: the predicted ones as long as they are right, otherwise by prompt lookup."""
        if not self.sampler.greedy:
            return []
        # The pass yields one token behind the draft, so that a draft leaves room for it.
        count, left = len(self.written), self.max_tokens - self.thinking.text_tokens - 1
        if self.predicted[:count] == self.written and self.predicted[count:]:
            return self.predicted[count:][: min(LONGEST_PREDICTED, left)]
        return lookup(self.packed, self.written)[:left]

    def take(self, token: int, logits: torch.Tensor | None = None) -> bool:
        """Takes the next token that the model wrote; returns True if it was the last one.

        logits: of the whole vocabulary, which the token was chosen by; for a request that is scored.
        """
        done = self._take(token, logits)
        if self.cancellation is not None and self.cancellation.listener:
            self.cancellation.listener(self.kept if done else self.text, self.thinking.thoughts)
        return done

    def _take(self, token: int, logits: torch.Tensor | None) -> bool:
        self.written.append(token)
        if token in self.vocabulary.ends:
            self._end(cut=False)
            return True
        piece = self.thinking.take(self._decoded.take(token))
        if self.scored and logits is not None and (piece or not self.thinking.thinks):
            self._scores.append((piece, log_probability(logits, token)))
        if self._enough(piece):
            return True
        if self.thinking.text_tokens >= self.max_tokens or self.thinking.is_hopeless:
            self._end(cut=True)
            return True
        if self.thinking.is_overdue:
            self._close_thought()
        if self._constraint is not None:
            self._constraint.take(token)
        return False

    def _end(self, *, cut: bool) -> None:
        rest = self.thinking.end(cut=cut)
        if rest and self._scores:
            (text, score), self._scores[-1:] = self._scores[-1], []
            self._scores.append((text + rest, score))

    def _close_thought(self) -> None:
        """Writes the closing mark in the model's place; the next pass reads it."""
        closing = self.vocabulary.encode_written(self.thinking.close())
        self.written += closing
        self.forced += len(closing)
        # A character that the thought broke off in isn't the text's.
        self._decoded = self.vocabulary.written(closing, self._shown)

    def finish(self) -> None:
        """Resolves the future; the result is in the request."""
        self.future.set_result(None)

    def fail(self, error: Exception) -> None:
        """Makes the future raise an error."""
        self.future.set_exception(error)
