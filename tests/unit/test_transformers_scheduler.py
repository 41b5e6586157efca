from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Event, Semaphore
from typing import TYPE_CHECKING, Any

import pytest

from cotrail.core.ports.cancellation import Interrupted
from cotrail.errors import StepError, TransientStepError

if TYPE_CHECKING:
    from cotrail.engines.language_models.transformers.scheduler import Scheduler

pytestmark = pytest.mark.usefixtures("transformers")

DEADLINE = 30.0


class Panic(BaseException):
    """As libraries in Rust raise it: no `Exception`."""


class Waiting:
    """A request as far as a scheduler sees it."""

    def __init__(self, name: str, size: int = 1) -> None:
        self.name = name
        self.size = size
        self.future: Future[None] = Future()
        self.cancelled = False

    def fail(self, error: BaseException) -> None:
        self.future.set_exception(error)


class ByHand:
    """An engine that finishes what it took, a step each time that `steps` is released."""

    def __init__(self, room: int = 2, memory: int = 1000, batching_delay: float = 0.0) -> None:
        self.batching_delay = batching_delay
        self.admitted: list[list[str]] = []
        self.steps = Semaphore(0)
        self.began = Event()
        self.broken: BaseException | None = None
        self.unending = False
        self._room = room
        self._memory = memory
        self._taken: list[Waiting] = []

    @property
    def busy(self) -> bool:
        return bool(self._taken)

    def room(self) -> int:
        return self._room - len(self._taken)

    def admit(self, requests: list[Any]) -> None:
        import torch

        if sum(request.size for request in requests) > self._memory:
            raise torch.OutOfMemoryError("made up")
        if self.broken:
            raise self.broken
        self.admitted.append([request.name for request in requests])
        self._taken += requests

    def step(self) -> None:
        self.began.set()
        self.steps.acquire(timeout=DEADLINE)
        if self.broken:
            raise self.broken
        if self.unending:
            return
        for request in self._taken:
            request.future.set_result(None)
        self._taken = []

    def drop(self, request: Any) -> None:
        self._taken.remove(request)

    def cancel(self) -> None:
        self._taken = []


Make = Callable[[ByHand], "Scheduler"]


@pytest.fixture
def scheduled() -> Iterator[Make]:
    from cotrail.engines.language_models.transformers.scheduler import Scheduler

    made: list[tuple[Scheduler, ByHand]] = []

    def make(engine: ByHand) -> "Scheduler":
        made.append((Scheduler(engine), engine))
        return made[-1][0]

    yield make
    for scheduler, engine in made:
        scheduler.interrupt()
        engine.steps.release(100)


def submit(scheduler: "Scheduler", *requests: Any) -> None:
    for request in requests:
        scheduler.submit(request)


def outcome(request: Waiting) -> BaseException | None:
    return request.future.exception(DEADLINE)


def test_requests_are_taken_in_their_order_as_room_is_made(scheduled: Make) -> None:
    engine = ByHand()
    scheduler = scheduled(engine)
    requests = [Waiting(name) for name in "abcde"]
    submit(scheduler, requests[0])
    assert engine.began.wait(DEADLINE)
    submit(scheduler, *requests[1:])
    engine.steps.release(3)
    assert [outcome(request) for request in requests] == [None] * 5
    assert engine.admitted == [["a"], ["b", "c"], ["d", "e"]]


def test_an_engine_with_patience_waits_for_company(scheduled: Make) -> None:
    engine = ByHand(batching_delay=DEADLINE)
    scheduler = scheduled(engine)
    engine.steps.release()
    requests = [Waiting("a"), Waiting("b")]
    submit(scheduler, *requests)
    assert [outcome(request) for request in requests] == [None, None]
    assert engine.admitted == [["a", "b"]]


def test_what_does_not_fit_memory_together_is_tried_apart(scheduled: Make) -> None:
    engine = ByHand(room=4, memory=2, batching_delay=DEADLINE)
    scheduler = scheduled(engine)
    requests = [Waiting("a"), Waiting("b"), Waiting("large", 3), Waiting("c")]
    submit(scheduler, *requests)
    engine.steps.release()
    failed = outcome(requests.pop(2))
    assert isinstance(failed, TransientStepError)
    assert "fewer slots" in str(failed)
    assert [outcome(request) for request in requests] == [None] * 3
    assert engine.admitted == [["a", "b"], ["c"]]


def test_an_error_fails_those_concerned_and_no_later_request(scheduled: Make) -> None:
    engine = ByHand()
    scheduler = scheduled(engine)
    for error in (ValueError("odd"), StepError("hopeless"), Panic("the tokenizer is at fault"), SystemExit(1)):
        requests = [Waiting("a"), Waiting("b")]
        engine.began.clear()
        submit(scheduler, requests[0])
        assert engine.began.wait(DEADLINE)
        engine.broken = error
        engine.steps.release()
        outcome(requests[0])  # raised by the step
        submit(scheduler, requests[1])  # by the admission
        kinds = {type(outcome(request)) for request in requests}
        assert kinds == {StepError if isinstance(error, StepError) else TransientStepError}
        engine.broken = None
    last = Waiting("last")
    submit(scheduler, last)
    engine.steps.release()
    assert outcome(last) is None


def test_an_interrupt_ends_what_runs_waits_or_comes(scheduled: Make) -> None:
    engine = ByHand(room=1)
    scheduler = scheduled(engine)
    requests = [Waiting("a"), Waiting("b")]
    submit(scheduler, requests[0])
    assert engine.began.wait(DEADLINE)
    submit(scheduler, requests[1])
    engine.broken = RuntimeError("broken off")  # whatever the step under way comes to
    scheduler.interrupt()
    engine.steps.release()
    assert isinstance(outcome(requests[1]), Interrupted)
    assert outcome(requests[0]) is not None
    with pytest.raises(Interrupted):
        submit(scheduler, Waiting("late"))


def test_requests_that_are_cut_off_make_room_for_others(scheduled: Make) -> None:
    engine = ByHand(room=1)
    engine.unending = True
    scheduler = scheduled(engine)
    running, waiting, other = (Waiting(name) for name in "abc")
    submit(scheduler, running)
    assert engine.began.wait(DEADLINE)
    submit(scheduler, waiting, other)
    running.cancelled = waiting.cancelled = True
    engine.steps.release()
    assert [type(outcome(request)) for request in (running, waiting)] == [Interrupted, Interrupted]
    engine.unending = False
    engine.steps.release()
    assert outcome(other) is None
    assert engine.admitted == [["a"], ["c"]]


def test_halving_does_all_that_fits() -> None:
    import torch

    from cotrail.engines.device_memory import halving

    done: list[list[int]] = []

    def work(sizes: list[int]) -> None:
        if sum(sizes) > 5:
            raise torch.OutOfMemoryError("made up")
        done.append(sizes)

    assert halving(work, [3, 2, 9, 1, 1]) == [9]
    assert done == [[3, 2], [1, 1]]
