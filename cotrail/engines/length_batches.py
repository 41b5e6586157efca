"""Batches of items of similar length, so that little of a forward pass is padding."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def batches(items: Sequence[Item], size: Callable[[Item], int], most: int) -> list[list[Item]]:
    """Splits items, the largest first, into batches of at most `most` once padded to their largest item.

    size: an item's length, in the unit of `most`. An item larger than `most` makes a batch of its own, as all do where
        `most` is 0.
    """
    batched: list[list[Item]] = []
    for item in sorted(items, key=size, reverse=True):
        if batched and (len(batched[-1]) + 1) * size(batched[-1][0]) <= most:
            batched[-1].append(item)
        else:
            batched.append([item])
    return batched
