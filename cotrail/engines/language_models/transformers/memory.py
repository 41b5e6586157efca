"""What to do where a device's memory doesn't suffice."""

from collections.abc import Callable
from typing import TypeVar

import torch

from cotrail.errors import TransientStepError

T = TypeVar("T")


def no_room() -> TransientStepError:
    """What a request fails with that doesn't fit even alone."""
    return TransientStepError(
        "the device has too little memory for this prompt, even alone: take fewer slots or a shorter context, or leave "
        "the device to this process"
    )


def halving(work: Callable[[list[T]], None], items: list[T]) -> list[T]:
    """Does the work on all items at once, or else on halves of them, and so on; the items that don't fit even alone.

    work: takes all its items or, where it raises torch.OutOfMemoryError, none.
    """
    if _fits(work, items):
        return []
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if len(items) == 1:
        return items
    middle = len(items) // 2
    return [*halving(work, items[:middle]), *halving(work, items[middle:])]


def _fits(work: Callable[[list[T]], None], items: list[T]) -> bool:
    """Whether the work was done; what it allocated is free again once the error is gone, hence this function."""
    try:
        work(items)
    except torch.OutOfMemoryError:
        return False
    return True
