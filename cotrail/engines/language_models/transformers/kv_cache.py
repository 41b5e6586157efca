"""KV cache of many prompts: one row each, allocated once."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import signature
from typing import Any

import torch
from msgspec import Struct
from transformers import AttentionInterface, DynamicCache
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicLayer

from cotrail.errors import InputError

# Grouped-query attention over rows of the KV cache, without copying them.

ATTENTION_NAME = "cotrail"
"""The attention's name in a model's `set_attn_implementation`."""


def grouped(
    module: torch.nn.Module,  # noqa: ARG001 - the signature is transformers'
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """PyTorch's scaled dot-product attention where several query heads share keys and values.

    query: batch x query heads x tokens x size; key, value: batch x key heads x seen tokens x size.
    Returns batch x tokens x query heads x size. Raises InputError for variants of attention that it doesn't compute.
    """
    # PyTorch's function has neither, and would compute another model without a word.
    if others.get("softcap") is not None or others.get("s_aux") is not None:
        raise InputError("the model caps its attention or gives it sinks, which isn't supported: use a GGUF of it")
    batch, heads, length, size = query.shape
    groups = heads // key.shape[1]
    # With a mask, transformers' own function repeats the keys and values of the whole cache for each query head. Here
    # the queries that share them become further tokens of one head, under the same mask.
    query = query.reshape(batch, key.shape[1], groups * length, size)
    mask = attention_mask.repeat(1, 1, groups, 1)
    seen = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)
    return seen.reshape(batch, heads, length, value.shape[-1]).transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION_NAME, grouped)

ALIGNED = 64
"""Rows have a multiple of this many tokens, and passes see as many: kernels are chosen by memory alignment, so that
equal alignment means equal results."""


class View(Struct, frozen=True):
    """The part of the cache that a forward pass writes and sees.

    rows: the cache's row for each row of the batch; length: how many tokens of them are seen.
    batch, query: indices of the pass's tokens that are stored; row, position: where in the cache they are stored.
    """

    rows: slice | torch.Tensor
    length: int
    batch: torch.Tensor
    query: torch.Tensor
    row: torch.Tensor
    position: torch.Tensor


class AllocatedLayer(CacheLayerMixin):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """The keys and values of one layer, as rows x heads x tokens x size."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self.keys, self.values = keys, values
        self.is_initialized = True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Does nothing: everything is allocated from the start."""


class RowLayer(AllocatedLayer):
    """A layer of which a pass writes and sees what its view says."""

    view: View

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Stores the new keys and values, and returns those that the pass sees."""
        view = self.view
        # Only tokens of feeds: padding and idle rows would overwrite what other slots hold.
        self.keys[view.row, :, view.position] = key_states[view.batch, :, view.query]
        self.values[view.row, :, view.position] = value_states[view.batch, :, view.query]
        return self.keys[view.rows, :, : view.length], self.values[view.rows, :, : view.length]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:  # noqa: ARG002
        """See `CacheLayerMixin`; masks are made elsewhere."""
        return self.view.length, 0

    def get_seq_length(self) -> int:
        """See `CacheLayerMixin`; positions are given elsewhere."""
        return self.view.length

    def get_max_length(self) -> int:
        return int(self.keys.shape[2])


class RowCache(Cache):  # type: ignore[misc, unused-ignore]
    """The keys and values of all layers.

    shapes: heads and sizes of each layer's keys and values, see `layer_shapes`; like: a tensor of the cache's type and
        device.
    """

    def __init__(self, shapes: Sequence["Shape"], rows: int, context: int, like: torch.Tensor) -> None:
        tokens = -(-context // ALIGNED) * ALIGNED

        def empty(heads: int, size: int) -> torch.Tensor:
            # Zeros, because masked values are still multiplied, and uninitialized memory may hold NaN.
            return torch.zeros(rows, heads, tokens, size, dtype=like.dtype, device=like.device)

        self._rows = [RowLayer(empty(shape.heads, shape.key), empty(shape.heads, shape.value)) for shape in shapes]
        super().__init__(layers=[*self._rows])

    def show(self, view: View) -> None:
        """Sets what the next pass writes and sees."""
        for layer in self._rows:
            layer.view = view

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Copies the first tokens of a row into another row."""
        for layer in self._rows:
            for states in (layer.keys, layer.values):
                # What stands behind these tokens is masked, and overwritten as the row's own prompt is read.
                states[target, :, :tokens] = states[source, :, :tokens]


class Shape(Struct, frozen=True):
    """The number of heads that a layer keeps keys and values for, and their sizes."""

    heads: int
    key: int
    value: int

    @property
    def numbers(self) -> int:
        """Count of the numbers that this layer keeps for a token."""
        return self.heads * (self.key + self.value)


def layer_shapes(model: Any, context: int) -> list[Shape]:
    """The shapes of each layer's keys and values, found by a pass with a single token.

    Raises InputError where a layer doesn't keep the whole context.
    """
    limit = getattr(model.config, "max_position_embeddings", None)
    if limit is not None and context > limit:
        raise InputError(f"the model takes {limit} tokens: set its context, which is {context}, to that or less")
    cache: Any = DynamicCache(config=model.config)
    token = torch.zeros(1, 1, dtype=torch.long, device=model.device)
    sees = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=model.device)
    with torch.inference_mode():
        model(input_ids=token, position_ids=token, attention_mask=sees, **cached(model, cache))
    if odd := {type(layer).__name__ for layer in cache.layers if not _keeps(layer, context)}:
        raise InputError(
            f"the model has layers that don't keep {context} tokens ({', '.join(sorted(odd))}): set a shorter context, "
            "or use a GGUF of it with llama.cpp"
        )
    return [Shape(layer.keys.shape[1], layer.keys.shape[3], layer.values.shape[3]) for layer in cache.layers]


def fitting_rows(device: torch.device, row: int, share: float, context: int) -> int:
    """How many rows of so many bytes fit into this share of a GPU's free memory; raises InputError where none does."""
    free, _ = torch.cuda.mem_get_info(device)
    if (rows := int(free * share) // row) < 1:
        raise InputError(f"the GPU has no room for {context} tokens along with the model: set a shorter context")
    return rows


def cached(model: Any, cache: Any) -> dict[str, Any]:
    """The argument by which `model` takes its cache: transformers 5.24 renamed it."""
    return {_cache_parameter(type(model).forward): cache}


@lru_cache
def _cache_parameter(forward: Callable[..., Any]) -> str:
    return "cache" if "cache" in signature(forward).parameters else "past_key_values"


# A layer with a sliding window drops old tokens, which a row of fixed positions can't.
def _keeps(layer: Any, context: int) -> bool:
    return isinstance(layer, DynamicLayer) and context <= getattr(layer, "sliding_window", context)
