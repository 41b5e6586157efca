"""Out-of-memory handling on a device: a batch that doesn't fit is split in halves."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from cotrail.engines.pair_models import batches
from cotrail.errors import TransientStepError

Item = TypeVar("Item")


def no_room() -> TransientStepError:
    """The error of a request that doesn't fit even alone."""
    return TransientStepError(
        "the device has too little memory for this prompt, even alone: take fewer slots or a shorter context, or leave "
        "the device to this process"
    )


def halving(work: Callable[[list[Item]], None], items: list[Item]) -> list[Item]:
    """Does the work on all items at once or, if memory runs out, on halves of them recursively.

    work: takes all its items or, where it raises torch.OutOfMemoryError, none.
    Returns the items that don't fit even alone.
    """
    if _fits(work, items):
        return []
    if torch.cuda.is_available():
        # Freed blocks of other sizes stay with PyTorch otherwise, and the halves might not fit into them.
        torch.cuda.empty_cache()
    if len(items) == 1:
        return items
    middle = len(items) // 2
    return [*halving(work, items[:middle]), *halving(work, items[middle:])]


def in_batches(
    work: Callable[[list[Item]], None], items: Sequence[Item], size: Callable[[Item], int], most: int
) -> None:
    """Does work in batches of similar length, and in halves of the batches that don't fit into a device's memory.

    work: does all of a batch or, where it raises torch.OutOfMemoryError, nothing; size, most: as in `batches`.
    Raises TransientStepError where an item doesn't fit even alone.
    """
    for batch in batches(items, size, most):
        if halving(work, batch):
            raise TransientStepError(
                "the device has too little memory for this text, even alone: leave the device to this process"
            )


# A function of its own: the error's traceback holds the tensors of the failed attempt, and only once this frame has
# returned can `halving` give their memory back to the device.
def _fits(work: Callable[[list[Item]], None], items: list[Item]) -> bool:
    """Return whether the work was done."""
    try:
        work(items)
    except torch.OutOfMemoryError:
        return False
    return True
