"""The latest results of an engine, which is asked for the same again and again."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class RecentResults(Generic[Key, Value]):
    """Results by what was asked; safe for many threads."""

    def __init__(self) -> None:
        self._results: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def known(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Those of these results that are still there."""
        with self._lock:
            return {key: self._results[key] for key in keys if key in self._results}

    def keep(self, results: Mapping[Key, Value], most: int) -> None:
        """Keeps results as the latest, and forgets the oldest beyond so many."""
        with self._lock:
            for key, value in results.items():
                self._results[key] = value
                self._results.move_to_end(key)
            while len(self._results) > most:
                self._results.popitem(last=False)
