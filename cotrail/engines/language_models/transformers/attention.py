"""Grouped-query attention over rows of the KV cache, without copying them."""

from typing import Any

import torch
from transformers import AttentionInterface

from cotrail.errors import InputError

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
