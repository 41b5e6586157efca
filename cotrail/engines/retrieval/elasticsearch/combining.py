"""Doing together what threads ask for at the same time."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from cotrail.errors import TransientStepError

Item = TypeVar("Item")
Done = TypeVar("Done")


class Combiner(Generic[Item, Done]):
    """Calls `work` with all items that came while it was last at work; an item that comes alone waits for nothing.

    work: returns a result or an error for each item, in their order; what it raises counts for all of them.
    It runs in the thread of one of those that wait, so that nothing has to be stopped.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Sequence[Done | Exception]]) -> None:
        self._work = work
        self._waiting: list[tuple[Item, Future[Done]]] = []
        self._handing_in = threading.Lock()
        self._working = threading.Lock()

    def do(self, item: Item) -> Done:
        """Hands an item in and waits for its result; raises its error."""
        future: Future[Done] = Future()
        with self._handing_in:
            self._waiting.append((item, future))
        with self._working:
            if not future.done():
                self._do_all()
        return future.result()

    def _do_all(self) -> None:
        with self._handing_in:
            batch, self._waiting = self._waiting, []
        try:
            results = self._work([item for item, _ in batch])
            if len(results) != len(batch):
                raise TransientStepError(f"{len(batch)} were asked for at once, and {len(results)} answers came")
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever handed the items in
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
