"""Scheduler: the thread in which a model runs, and the interface of the runner that it drives."""

from collections import deque
from threading import Condition, Thread
from typing import Protocol

from cotrail.core.ports.cancellation import Interrupted
from cotrail.engines.device_memory import halving, no_room
from cotrail.engines.language_models.transformers.request import Request
from cotrail.errors import CotrailError, TransientStepError


class ModelRunner(Protocol):
    """Continues several prompts at once; used by one thread only.

    It calls `Request.take` with each token, and `finish` or `fail` once when a request is done.
    """

    @property
    def batching_delay(self) -> float:
        """Seconds that an idle runner should wait for more requests after the first one (micro-batching)."""

    @property
    def busy(self) -> bool:
        """Return whether `step` has anything to do."""

    def room(self) -> int:
        """The number of requests that it can take now."""

    def admit(self, requests: list[Request]) -> None:
        """Takes requests, at most `room()`; all of them or, if it raises, none."""

    def step(self) -> None:
        """Reads a part of the prompts, writes a token of each text, or both."""

    def drop(self, request: Request) -> None:
        """Drops a request whose future is resolved already."""

    def cancel(self) -> None:
        """Drops all requests and leaves their futures alone."""


class Scheduler:
    """Has a runner work on requests in the order in which they arrive."""

    def __init__(self, runner: ModelRunner) -> None:
        self._runner = runner
        self._waiting: deque[Request] = deque()
        self._admitted: list[Request] = []
        self._changed = Condition()
        self._interrupted = False
        Thread(target=self._work, name="transformers", daemon=True).start()

    def submit(self, request: Request) -> None:
        """Queues a request, whose future will be resolved. Raises Interrupted."""
        with self._changed:
            if self._interrupted:
                raise Interrupted
            self._waiting.append(request)
            self._changed.notify()

    def interrupt(self) -> None:
        """Makes every request fail with `Interrupted` after the current step; no further step is run."""
        with self._changed:
            self._interrupted = True
            self._changed.notify()

    def _work(self) -> None:
        while not self._interrupted:
            try:
                self._cut_off()
                self._admit(self._take())
                self._step()
            # Panics of the tokenizer's Rust code, for one, are no Exception.
            except BaseException as error:  # noqa: BLE001 - all callers wait for this thread, so it survives any error
                # Everything under way ends: the runner may have left it in an inconsistent state.
                self._runner.cancel()
                self._give_up(error)
        self._runner.cancel()
        self._give_up(Interrupted())
        # Without the lock: `submit` refuses requests by now.
        for request in self._waiting:
            request.fail(Interrupted())

    def _cut_off(self) -> None:
        """Ends the requests that were cancelled."""
        with self._changed:
            waiting = [request for request in self._waiting if request.cancelled]
            for request in waiting:
                self._waiting.remove(request)
        admitted = [request for request in self._admitted if request.cancelled and not request.future.done()]
        _fail([*waiting, *admitted], Interrupted())
        for request in admitted:
            self._runner.drop(request)

    def _take(self) -> list[Request]:
        """The requests that the runner has room for; blocks while there is nothing else to do."""
        with self._changed:
            if not self._runner.busy:
                self._changed.wait_for(lambda: self._interrupted or self._waiting)
                self._changed.wait_for(
                    lambda: self._interrupted or len(self._waiting) >= self._runner.room(), self._runner.batching_delay
                )
            count = 0 if self._interrupted else min(self._runner.room(), len(self._waiting))
            return [self._waiting.popleft() for _ in range(count)]

    def _admit(self, requests: list[Request]) -> None:
        if not requests:
            return
        try:
            for request in halving(self._runner.admit, requests):
                request.fail(no_room())
        except BaseException as error:  # noqa: BLE001 - other requests aren't affected
            _fail(requests, error)
        # The runner resolves futures itself; finished requests leave the list here.
        self._admitted = [request for request in [*self._admitted, *requests] if not request.future.done()]

    def _step(self) -> None:
        if self._interrupted or not self._runner.busy:
            return
        self._runner.step()

    def _give_up(self, error: BaseException) -> None:
        _fail(self._admitted, error)
        self._admitted = []


def _fail(requests: list[Request], error: BaseException) -> None:
    reason = (
        error
        if isinstance(error, CotrailError | Interrupted)
        else TransientStepError(f"transformers gave up: {error!r}; the step is tried again")
    )
    for request in requests:
        if not request.future.done():
            request.fail(reason)
