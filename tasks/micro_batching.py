"""Micro-batching: calls that threads make at the same time are carried out as one."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")
Told = TypeVar("Told")

logger = logging.getLogger(__name__)


class MicroBatcher(Generic[Item, Done]):
    """Calls `work` with all the items that threads handed in since the previous call.

    work: takes items and returns a result for each, in their order. If it raises for several items, each is tried
        alone, so that a poison item spoils nothing but itself.
    concerns_all: whether an error has nothing to do with the items, so that trying each alone is no use.
    interval_seconds: the least time between the beginnings of two calls while `crowded` returns True; a few
        milliseconds of waiting then save most of the calls. Otherwise an item doesn't wait.
    """

    # Only the batcher's own thread takes items out, so nothing but the queue, which locks by itself, is shared.
    # `_began` is written by that thread alone; others read it, and reading a reference is atomic under the GIL.

    def __init__(
        self,
        name: str,
        work: Callable[[Sequence[Item]], Sequence[Done]],
        interval_seconds: float = 0.0,
        crowded: Callable[[], bool] = lambda: True,
        concerns_all: Callable[[BaseException], bool] = lambda _: False,
    ) -> None:
        self._work = work
        self._interval = interval_seconds
        self._crowded = crowded
        self._concerns_all = concerns_all
        self._waiting: queue.SimpleQueue[tuple[Item, Future[Done]]] = queue.SimpleQueue()
        self._began: float | None = None
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def do(self, item: Item) -> Done:
        """Hands an item in and waits for its result; raises what `work` raised for it."""
        return self.hand_in(item).result()

    def hand_in(self, item: Item) -> Future[Done]:
        """Hands an item in; the future gets its result."""
        future: Future[Done] = Future()
        self._waiting.put((item, future))
        return future

    @property
    def busy_seconds(self) -> float:
        """Seconds since the call that is under way began; 0 while there is none."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    def _run(self) -> None:
        earliest = 0.0
        while True:
            batch = [self._waiting.get()]
            if self._crowded():
                time.sleep(max(0.0, earliest - time.monotonic()))
            while not self._waiting.empty():
                batch.append(self._waiting.get())
            self._began = time.monotonic()
            earliest = self._began + self._interval
            self._do(batch)
            self._began = None

    def _do(self, batch: list[tuple[Item, Future[Done]]]) -> None:
        try:
            results = self._work([item for item, _ in batch])
            if len(results) != len(batch):
                raise TypeError(f"{len(batch)} items were handed in, and {len(results)} results came out")
        except BaseException as error:  # noqa: BLE001 - it is raised where the item was handed in
            if len(batch) == 1 or self._concerns_all(error):
                for _, future in batch:
                    _tell(future.set_exception, error)
                return
            logger.warning("a batch of %d failed and is tried one by one: %s", len(batch), error)
            for each in batch:
                self._do([each])
            return
        for (_, future), result in zip(batch, results, strict=True):
            _tell(future.set_result, result)


def _tell(say: Callable[[Told], None], what: Told) -> None:
    """Settles an item's future; the thread survives whatever the callbacks of the future raise."""
    try:
        say(what)
    except BaseException:
        logger.exception("a callback of an item failed")
