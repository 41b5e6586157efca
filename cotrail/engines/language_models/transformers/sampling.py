"""Sampling of the next token."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import torch

from cotrail.core.generation import Sampling


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


def log_probability(logits: torch.Tensor, token: int) -> float:
    """The logarithm of a token's probability at temperature 1, by the logits of the whole vocabulary."""
    return float(torch.log_softmax(logits.float(), dim=-1)[token])


def next_tokens(logits: torch.Tensor, draws: Sequence[Sampler]) -> list[int]:
    """The next token for each row of logits; the greedy ones leave the device in a single transfer."""
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    return [token if draw.greedy else draw(row) for token, draw, row in zip(tokens, draws, logits, strict=True)]
