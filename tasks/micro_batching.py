"""Micro-batching: calls that threads make at the same time are carried out as one."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

import msgspec

from cotrail.core.ports.batches import BatchAnswer, TakesBatches
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel
from cotrail.core.results import Generated

Item = TypeVar("Item")
Done = TypeVar("Done")
Settled = TypeVar("Settled")

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
            # Blocks for the first item, then sleeps before the queue is drained: what arrives during the sleep joins
            # this batch instead of making the next one.
            if self._crowded():
                time.sleep(max(0.0, earliest - time.monotonic()))
            # No `get` blocks here: this thread alone takes items out, so a queue that isn't empty stays so.
            while not self._waiting.empty():
                batch.append(self._waiting.get())
            self._began = time.monotonic()
            earliest = self._began + self._interval
            self._do(batch)
            self._began = None

    def _do(self, batch: list[tuple[Item, Future[Done]]]) -> None:
        try:
            results = self._work([item for item, _ in batch])
            # Fewer results would leave futures unset, and the threads that wait for them would hang.
            if len(results) != len(batch):
                raise TypeError(f"{len(batch)} items were handed in, and {len(results)} results came out")
        except BaseException as error:  # noqa: BLE001 - it is raised where the item was handed in
            if len(batch) == 1 or self._concerns_all(error):
                for _, future in batch:
                    _settle(future.set_exception, error)
                return
            logger.warning("a batch of %d failed and is tried one by one: %s", len(batch), error)
            for each in batch:
                self._do([each])
            return
        for (_, future), result in zip(batch, results, strict=True):
            _settle(future.set_result, result)


def _settle(say: Callable[[Settled], None], what: Settled) -> None:
    """Settles an item's future; the thread survives whatever the callbacks of the future raise."""
    try:
        say(what)
    except BaseException:
        logger.exception("a callback of an item failed")


# Language models that are asked in batches: a step's request is handed over, and its answer taken another time.
#
# The step is carried out again once the answer is there, and finds it in place of its request; if it then asks again,
# that is a request of its own.


class AwaitsBatch(Exception):  # noqa: N818 - control flow, not a failure
    """A step can't go on before a batch has answered its request; body: that request, as JSON."""

    def __init__(self, model_name: str, body: str) -> None:
        super().__init__(f"the step waits for a batch to {model_name}")
        self.model_name = model_name
        self.body = body


class BatchedModel:
    """A language model for one step; see `LanguageModel`.

    answers: those to the step's earlier requests, as JSON, in the order in which it makes them again.
    """

    def __init__(self, model: LanguageModel, takes: TakesBatches, name: str, answers: Iterator[str]) -> None:
        self._model = model
        self._takes = takes
        self._name = name
        self._answers = answers

    @property
    def identity(self) -> str:
        return self._model.identity

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:  # noqa: ARG002
        """See `LanguageModel`; raises AwaitsBatch where there is no answer yet."""
        answer = next(self._answers, None)
        if answer is None:
            raise AwaitsBatch(self._name, self._takes.batch_body(request))
        return self._takes.batch_result(request, msgspec.json.decode(answer, type=BatchAnswer))

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """See `LanguageModel`; they are asked for at once, since batches have none."""
        return self._model.probabilities(text, choices)

    def interrupt(self) -> None:
        self._model.interrupt()


def batched(model: LanguageModel, name: str, answers: Iterator[str]) -> LanguageModel:
    """The model as it is asked in batches, or as it is where its provider offers none."""
    if isinstance(model, TakesBatches) and model.has_batches:
        return BatchedModel(model, model, name, answers)
    return model
