"""Flat combining: micro-batching of concurrent requests without a thread of its own."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from cotrail.errors import TransientStepError

Item = TypeVar("Item")
Done = TypeVar("Done")


class Combiner(Generic[Item, Done]):
    """Calls `work` with all items that arrived during its previous call; an item that arrives alone doesn't wait.

    work: returns a result or an error for each item, in their order; an exception counts for all items.
    It runs in the thread of one of the waiting callers, so that there is no thread to stop.
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
            # The previous holder of the lock may have done this item along with its own.
            if not future.done():
                self._do_all()
        return future.result()

    def _do_all(self) -> None:
        with self._handing_in:
            # Items that arrive from now on make up the next batch.
            batch, self._waiting = self._waiting, []
        try:
            results = self._work([item for item, _ in batch])
            if len(results) != len(batch):
                raise TransientStepError(
                    f"{len(batch)} requests were sent at once, and {len(results)} answers came back"
                )
        except BaseException as error:  # noqa: BLE001 - it is raised by all callers of these items
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
