"""Things that a person goes through one after the other, to mark each."""

from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Marking(Generic[T]):
    """The things that aren't marked yet, and how far the person is."""

    def __init__(self, unmarked: Sequence[T]) -> None:
        self._unmarked = unmarked
        self._passed = 0

    @property
    def next(self) -> T | None:
        """What is to be marked next; None where nothing is left."""
        return self._unmarked[self._passed] if self._passed < len(self._unmarked) else None

    @property
    def left(self) -> int:
        """How many are to be marked."""
        return len(self._unmarked) - self._passed

    def skip(self) -> None:
        """Passes on to the next one; this one is left for another time, unless it was marked."""
        self._passed += 1

    def back(self) -> T | None:
        """Goes back to the one before and returns it; None where there is none."""
        if not self._passed:
            return None
        self._passed -= 1
        return self.next
