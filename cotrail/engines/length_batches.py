"""Texts of like lengths, so that a model reads several in one pass and little of it is padding."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from cotrail.errors import TransientStepError

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


def in_batches(
    work: Callable[[list[Item]], None], items: Sequence[Item], size: Callable[[Item], int], most: int
) -> None:
    """Does work in such batches, and in halves of those that a device's memory has no room for.

    work: does all of a batch or, where it raises torch.OutOfMemoryError, nothing.
    Raises TransientStepError where an item doesn't fit even alone.
    """
    from cotrail.engines.language_models.transformers.memory import halving

    for batch in batches(items, size, most):
        if halving(work, batch):
            raise TransientStepError(
                "the device has too little memory for this text, even alone: leave the device to this process"
            )
