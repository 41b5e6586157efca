"""Attention over rows of the cache, without copying them."""

from typing import Any

import torch
from transformers import AttentionInterface

from cotrail.errors import InputError

NAME = "cotrail"
"""What a model's `set_attn_implementation` calls it."""


def grouped(
    module: torch.nn.Module,  # noqa: ARG001 - the signature is transformers'
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """PyTorch's scaled dot-product attention, where several heads may share keys and values.

    Under a mask, transformers' own repeats the keys and values of the whole cache for each head. Here the queries of
    the heads that share them stand behind each other instead.
    """
    if others.get("softcap") is not None or others.get("s_aux") is not None:
        raise InputError("the model caps its attention or gives it sinks, which isn't supported: use a GGUF of it")
    batch, heads, length, size = query.shape
    groups = heads // key.shape[1]
    query = query.reshape(batch, key.shape[1], groups * length, size)
    mask = attention_mask.repeat(1, 1, groups, 1)
    seen = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)
    return seen.reshape(batch, heads, length, value.shape[-1]).transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, grouped)
