"""Input tensors of one forward pass of continuous batching."""

from collections.abc import Sequence

import torch
from msgspec import Struct

from cotrail.engines.language_models.transformers.kv_cache import ALIGNED, View
from cotrail.engines.language_models.transformers.slots import Slot

MOST_WASTE = 1.25
"""The most rows a pass may have, as a multiple of those needed, so that they are adjacent and needn't be copied."""


class Feed(Struct, frozen=True):
    """A prompt's part of a pass: tokens to be read, and a draft of what follows them (speculative decoding).

    whole: True if the next token follows from them; otherwise more of the prompt has to be read.
    """

    slot: Slot
    tokens: list[int]
    draft: list[int]
    whole: bool

    @property
    def shown(self) -> list[int]:
        """All tokens of the pass."""
        return [*self.tokens, *self.draft]


class Batch:
    """The feeds of a pass, one row each, aligned at their last tokens.

    Between them may be idle rows, which store nothing in the cache.
    """

    def __init__(self, feeds: Sequence[Feed], device: torch.device) -> None:
        self._feeds = feeds
        self._device = device
        self._width = max(len(feed.shown) for feed in feeds)
        rows = [feed.slot.row for feed in feeds]
        first, count = min(rows), max(rows) - min(rows) + 1
        self._rows: slice | torch.Tensor
        # Adjacent rows are a view of the cache; scattered ones are gathered, which copies all that they hold.
        if count <= len(rows) * MOST_WASTE:
            self._rows, self._lines = slice(first, first + count), [row - first for row in rows]
        else:
            self._rows, self._lines = self._tensor(rows), list(range(len(rows)))

    def inputs(self) -> dict[str, torch.Tensor]:
        """Token ids and positions (rows x width), and the causal attention mask over the cache."""
        lines = max(self._lines) + 1
        tokens, positions = ([[0] * self._width for _ in range(lines)] for _ in range(2))
        for line, feed in zip(self._lines, self._feeds, strict=True):
            # Left padding: the logits behind the last tokens of all rows are then in the same columns.
            tokens[line][self._width - len(feed.shown) :] = feed.shown
            positions[line][self._width - len(feed.shown) :] = _positions(feed)
        ids, places = self._tensor([tokens, positions])
        sees = torch.arange(self._length, device=self._device) <= places[:, None, :, None]
        return {"input_ids": ids, "position_ids": places, "attention_mask": sees}

    def view(self) -> View:
        """The places in the cache where the pass stores its tokens."""
        kept = [
            (line, self._width - len(feed.shown) + n, feed.slot.row, position)
            for line, feed in zip(self._lines, self._feeds, strict=True)
            for n, position in enumerate(_positions(feed))
        ]
        batch, query, row, position = self._tensor(kept).T
        return View(self._rows, self._length, batch, query, row, position)

    def of_feeds(self, results: torch.Tensor) -> torch.Tensor:
        """The results for the feeds alone, in their order."""
        return results[self._tensor(self._lines)]

    @property
    def _length(self) -> int:
        # Kernels need masks of even lengths, and fewer distinct lengths mean fewer distinct blocks in the GPU's
        # allocator.
        return -(-max(_positions(feed).stop for feed in self._feeds) // ALIGNED) * ALIGNED

    def _tensor(self, numbers: Sequence[object]) -> torch.Tensor:
        return torch.tensor(numbers, device=self._device)


def _positions(feed: Feed) -> range:
    return range(len(feed.slot.held), len(feed.slot.held) + len(feed.shown))
