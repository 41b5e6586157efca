"""KV cache of an encoder-decoder model: keys and values of prompts (cross-attention) and of texts (self-attention).

Texts that began at different times end in the same column, the one written last, so that one pass continues them all.
T5 allows that because its positions are relative: only distances between tokens count. Columns before a text's first
one are masked.
"""

from typing import Any

import torch
from transformers import EncoderDecoderCache
from transformers.cache_utils import Cache, CacheLayerMixin

COLUMNS = 256
"""Columns that are allocated at a time."""


class WindowLayer(CacheLayerMixin):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """One layer's keys and values, as rows x heads x tokens x size, of which a pass sees a window."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self.kept = [keys, values]
        self.keys, self.values = keys, values
        self.is_initialized = True

    def show(self, rows: slice, tokens: slice) -> None:
        """Sets the window that the next pass sees."""
        self.keys, self.values = (states[rows, :, tokens] for states in self.kept)

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Does nothing: everything is allocated from the start."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Stores a new token of each row in the window's last column, and returns what the pass sees."""
        self.keys[:, :, -1:] = key_states
        self.values[:, :, -1:] = value_states
        return self.keys, self.values

    def get_seq_length(self) -> int:
        """The number of tokens that the window held before the pass."""
        return int(self.keys.shape[2]) - 1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:  # noqa: ARG002
        """See `CacheLayerMixin`."""
        return int(self.keys.shape[2]), 0

    def get_max_length(self) -> int:
        """The most tokens of a row."""
        return int(self.kept[0].shape[2])


class Seq2SeqCache:
    """Cache of `rows` texts for prompts of up to `context` tokens.

    used: the number of columns that the texts take so far.
    """

    def __init__(self, model: Any, rows: int, context: int) -> None:
        like = next(model.parameters())
        self._read = _layers(model, rows, context, like)
        self._written = _layers(model, rows, COLUMNS, like)
        self.used = 0

    def put(self, row: int, fresh: Any, line: int) -> int:
        """Takes over a row of a pass that read prompts and wrote a token each; returns the text's first column.

        fresh: the pass's EncoderDecoderCache; line: the row in it.
        """
        self.used = max(1, self.used)
        for kept, new in zip(self._read, fresh.cross_attention_cache.layers, strict=True):
            for states, added in zip(kept.kept, (new.keys, new.values), strict=True):
                states[row, :, : added.shape[2]] = added[line]
        for kept, new in zip(self._written, fresh.self_attention_cache.layers, strict=True):
            for states, added in zip(kept.kept, (new.keys, new.values), strict=True):
                states[row, :, self.used - 1] = added[line, :, 0]
        return self.used - 1

    def move(self, source: int, target: int) -> None:
        """Copies a row."""
        for layer in [*self._read, *self._written]:
            for states in layer.kept:
                states[target] = states[source]

    def show(self, rows: slice, prompt: int, first: int) -> EncoderDecoderCache:
        """The cache for a pass that writes the column `used`: `prompt` tokens of prompts, and columns from `first`
        on.
        """
        for layer in self._read:
            layer.show(rows, slice(prompt))
        for layer in self._written:
            layer.show(rows, slice(first, self.used + 1))
        shown = EncoderDecoderCache(Cache(layers=[*self._written]), Cache(layers=[*self._read]))
        # Tells transformers that the cross-attention keys are there, so that it doesn't compute them from the encoder's
        # output, which is a placeholder.
        shown.is_updated = dict.fromkeys(range(len(self._read)), True)
        return shown

    @property
    def full(self) -> bool:
        """Return whether `begin_at` must make room for a further column."""
        return self.used == self._written[0].get_max_length()

    def begin_at(self, first: int) -> None:
        """Drops the columns before `first`, and makes room for more behind the others."""
        kept = self.used - first
        for layer in self._written:
            layer.kept = [_moved(states, first, self.used) for states in layer.kept]
        self.used = kept


def bytes_a_row(model: Any, context: int) -> int:
    """The memory of a row in bytes, without what is written."""
    config, like = model.config, next(model.parameters())
    return int(2 * config.num_decoder_layers * config.num_heads * config.d_kv * context * like.element_size())


def _layers(model: Any, rows: int, tokens: int, like: torch.Tensor) -> list[WindowLayer]:
    shape = (rows, model.config.num_heads, tokens, model.config.d_kv)
    # Zeros, because masked values are still multiplied, and uninitialized memory may hold NaN.
    return [WindowLayer(like.new_zeros(shape), like.new_zeros(shape)) for _ in range(model.config.num_decoder_layers)]


def _moved(states: torch.Tensor, first: int, last: int) -> torch.Tensor:
    """The columns from `first` to `last` at the front of a new tensor, with room for at least `COLUMNS` more."""
    rows, heads, _, size = states.shape
    tokens = ((last - first) // COLUMNS + 2) * COLUMNS
    moved = states.new_zeros(rows, heads, tokens, size)
    moved[:, :, : last - first] = states[:, :, first:last]
    return moved
