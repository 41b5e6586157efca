"""Request of the scheduler: a prompt, and the state of its continuation.

Speculative decoding by prompt lookup: drafts of the next tokens, which the model verifies in a single pass.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import cached_property
from typing import Protocol

import torch

from cotrail.core.generation import Ended, Sampling, Until
from cotrail.core.ports.cancellation import Cancellation
from cotrail.engines.language_models.stop_conditions import kept, stop_condition, why_ended
from cotrail.engines.language_models.transformers.vocabulary import Vocabulary
from cotrail.engines.language_models.worker_thoughts import ThinkingText


class Constraint(Protocol):
    """Which tokens may come next in a text."""

    def masked(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits, which are on the CPU, with those of tokens that may not come next at minus infinity."""

    def take(self, token: int) -> None:
        """Takes note of the next token, once the text has it."""


class Sampler:
    """Samples the tokens of one request by its own seed, independent of other requests.

    seen: returns the tokens of its prompt and its text so far; constraint: which tokens may come next, None for all.
    """

    def __init__(
        self, sampling: Sampling, seen: Callable[[], Iterable[int]], constraint: Constraint | None = None
    ) -> None:
        self._sampling = sampling
        self._seen = seen
        self._constraint = constraint
        # On the CPU, because generators on other devices give other numbers for the same seed.
        self._chance = torch.Generator().manual_seed(sampling.seed)

    @property
    def greedy(self) -> bool:
        """Return whether simply the token of the highest logit is taken."""
        unchanged = self._sampling.repetition_penalty == 1 and self._constraint is None
        return unchanged and self._sampling.temperature == 0

    def __call__(self, logits: torch.Tensor) -> int:
        """The next token, by the logits of the whole vocabulary."""
        if self.greedy:
            return int(logits.argmax())
        sampling, logits = self._sampling, logits.float().cpu()
        if self._constraint is not None:
            logits = self._constraint.masked(logits)
        if sampling.repetition_penalty != 1:
            logits = penalized(logits, self._seen(), sampling.repetition_penalty)
        if sampling.temperature == 0:
            return int(logits.argmax())
        likely = torch.softmax(logits / sampling.temperature, dim=-1)
        if sampling.top_k or sampling.top_p < 1:
            likely = likeliest(likely, sampling.top_k, sampling.top_p)
        return int(torch.multinomial(likely, 1, generator=self._chance))


class ChoiceScorer(Sampler):
    """Compares the probabilities of some tokens instead of sampling one.

    shares: the probabilities of these tokens among them alone; empty before the call.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        super().__init__(Sampling(temperature=1.0), tuple)
        self._tokens = list(tokens)
        self.shares: tuple[float, ...] = ()

    def __call__(self, logits: torch.Tensor) -> int:
        """Any of the tokens: it isn't used."""
        self.shares = tuple(torch.softmax(logits.cpu()[self._tokens].double(), dim=-1).tolist())
        return self._tokens[0]


def penalized(logits: torch.Tensor, seen: Iterable[int], penalty: float) -> torch.Tensor:
    """The logits with those of the tokens seen made smaller, see `Sampling`."""
    places = torch.tensor(sorted(set(seen)), dtype=torch.long)
    those = logits[places]
    return logits.index_put((places,), torch.where(those > 0, those / penalty, those * penalty))


def likeliest(likely: torch.Tensor, top_k: int, top_p: float) -> torch.Tensor:
    """The probabilities with those of unlikely tokens set to 0, see `Sampling`; they no longer add up to 1.

    Of the `top_k` likeliest tokens so many stay that they together have `top_p` of these tokens' probability (nucleus
    sampling, Holtzman et al., 2020).
    """
    # Stable, so that of equally likely tokens it is always the same ones that stay.
    order = likely.argsort(descending=True, stable=True)[: top_k or None]
    kept = likely[order]
    if top_p < 1:
        likelier = kept.cumsum(-1) - kept
        unlikely = likelier >= top_p * kept.sum()
        unlikely[0] = False
        kept = kept.masked_fill(unlikely, 0)
    return torch.zeros_like(likely).index_put((order,), kept)


def next_tokens(logits: torch.Tensor, draws: Sequence[Sampler]) -> list[int]:
    """The next token for each row of logits; the greedy ones leave the device in a single transfer."""
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    return [token if draw.greedy else draw(row) for token, draw, row in zip(tokens, draws, logits, strict=True)]


GRAMS = (3, 2)
"""Lengths of the n-grams that must recur for a draft; the longer is tried first, as it is more reliable."""

LONGEST_DRAFT = 5
"""Tokens of a draft from prompt lookup."""

LONGEST_PREDICTED = 32
"""Tokens of a draft that the model wrote before, see `continuations`."""


def lookup(prompt: bytes, tokens: Sequence[int], longest: int = LONGEST_DRAFT) -> list[int]:
    """The tokens that followed the last n-gram where it occurred last (prompt lookup decoding, Saxena 2023).

    prompt: its tokens, see `packed`.
    """
    text = prompt + packed(tokens)
    size = array("I").itemsize
    for gram in GRAMS:
        end = text[-gram * size :]
        place = text.rfind(end, 0, -size)
        # A match of bytes may begin within a token; only aligned ones are matches of tokens.
        while place > 0 and place % size:
            place = text.rfind(end, 0, place + len(end) - 1)
        if place >= 0 and len(text) > gram * size:
            return array("I", text[place + len(end) :][: longest * size]).tolist()
    return []


def packed(tokens: Sequence[int]) -> bytes:
    """Tokens as bytes, in which byte search finds n-grams fast."""
    return array("I", tokens).tobytes()


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
        # What is sampled is drawn from the seed token by token, and a draft would be right only by chance.
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
            self._scores.append((piece, float(torch.log_softmax(logits.float(), dim=-1)[token])))
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
        # As if the model had written it, which the next pass can't tell; it is counted apart all the same.
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
