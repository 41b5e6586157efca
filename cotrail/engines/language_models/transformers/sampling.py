"""Sampling of the next token."""

from collections.abc import Sequence

import torch

from cotrail.core.generation import Sampling


class Sampler:
    """Samples the tokens of one request by its own seed, independent of other requests."""

    def __init__(self, sampling: Sampling) -> None:
        self.temperature = sampling.temperature
        # On the CPU, because generators on other devices give other numbers for the same seed.
        self._chance = torch.Generator().manual_seed(sampling.seed)

    @property
    def greedy(self) -> bool:
        """Return whether decoding is greedy: the likeliest token is taken."""
        return self.temperature == 0

    def __call__(self, logits: torch.Tensor) -> int:
        """The next token, by the logits of the whole vocabulary."""
        if self.greedy:
            return int(logits.argmax())
        likely = torch.softmax(logits.float().cpu() / self.temperature, dim=-1)
        return int(torch.multinomial(likely, 1, generator=self._chance))


class ChoiceScorer(Sampler):
    """Compares the probabilities of some tokens instead of sampling one.

    shares: the probabilities of these tokens among them alone; empty before the call.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        super().__init__(Sampling(temperature=1.0))
        self._tokens = list(tokens)
        self.shares: tuple[float, ...] = ()

    def __call__(self, logits: torch.Tensor) -> int:
        """Any of the tokens: it isn't used."""
        self.shares = tuple(torch.softmax(logits.cpu()[self._tokens].double(), dim=-1).tolist())
        return self._tokens[0]


def next_tokens(logits: torch.Tensor, draws: Sequence[Sampler]) -> list[int]:
    """The next token for each row of logits; the greedy ones leave the device in a single transfer."""
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    return [token if draw.greedy else draw(row) for token, draw, row in zip(tokens, draws, logits, strict=True)]
