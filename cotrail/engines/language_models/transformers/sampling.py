"""Which token comes next."""

from collections.abc import Sequence

import torch

from cotrail.core.generation import Sampling


class Sampler:
    """Chooses the tokens of one request, by its own seed: what others draw meanwhile plays no part."""

    def __init__(self, sampling: Sampling) -> None:
        self.temperature = sampling.temperature
        # On the CPU, since generators on other devices give other numbers for the same seed.
        self._chance = torch.Generator().manual_seed(sampling.seed)

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken."""
        return self.temperature == 0

    def __call__(self, logits: torch.Tensor) -> int:
        """A token by the logits of the whole vocabulary."""
        if self.greedy:
            return int(logits.argmax())
        likely = torch.softmax(logits.float().cpu() / self.temperature, dim=-1)
        return int(torch.multinomial(likely, 1, generator=self._chance))


class ChoiceScorer(Sampler):
    """Weighs some tokens instead of drawing one of all.

    shares: how likely each is among them alone; empty before it was called.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        super().__init__(Sampling(temperature=1.0))
        self._tokens = list(tokens)
        self.shares: tuple[float, ...] = ()

    def __call__(self, logits: torch.Tensor) -> int:
        """Any of the tokens: none is written."""
        self.shares = tuple(torch.softmax(logits.cpu()[self._tokens].double(), dim=-1).tolist())
        return self._tokens[0]


def next_tokens(logits: torch.Tensor, draws: Sequence[Sampler]) -> list[int]:
    """A token for each row of logits; the greedy ones leave the device together."""
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    return [token if draw.greedy else draw(row) for token, draw, row in zip(tokens, draws, logits, strict=True)]
