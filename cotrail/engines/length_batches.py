"""Batches of items of similar length, so that little of a forward pass is padding."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def batches(items: Sequence[Item], size: Callable[[Item], int], most: int) -> list[list[Item]]:
    """All items, the largest first, in batches that take at most so much once padded to their largest item.

    An item that is larger than that, as all are where `most` is 0, makes a batch of its own.
    """
    made: list[list[Item]] = []
    for item in sorted(items, key=size, reverse=True):
        if made and (len(made[-1]) + 1) * size(made[-1][0]) <= most:
            made[-1].append(item)
        else:
            made.append([item])
    return made
