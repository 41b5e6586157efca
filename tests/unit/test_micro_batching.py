import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

import pytest

from cotrail.tasks.micro_batching import MicroBatcher
from tests.conftest import Eventually

Item = TypeVar("Item")
Done = TypeVar("Done")

SECONDS = 30


class Panic(BaseException):
    """As libraries in Rust raise it: no `Exception`."""


class Gate:
    """Work that waits, batch by batch, until it is let through; it keeps every batch that it was handed."""

    def __init__(self, do: Callable[[str], str] = str.upper) -> None:
        self.batches: list[list[str]] = []
        self.begun = threading.Semaphore(0)
        self.through = threading.Semaphore(0)
        self._do = do

    def work(self, items: Sequence[str]) -> list[str]:
        self.batches.append(list(items))
        self.begun.release()
        assert self.through.acquire(timeout=SECONDS)
        return [self._do(item) for item in items]

    def open(self) -> None:
        self.through.release(1000)


def aside(do: Callable[[Item], Done], item: Item) -> Future[Done]:
    """Calls in a thread that no failing test has to wait for."""
    future: Future[Done] = Future()

    def call() -> None:
        try:
            future.set_result(do(item))
        except Exception as error:  # noqa: BLE001 - the test looks at it
            future.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return future


def hand_in(batcher: MicroBatcher[str, str], items: str, eventually: Eventually) -> list[Future[str]]:
    """Hands items in from a thread each, one after another, all while the batcher is at work."""
    futures = []
    for count, item in enumerate(items, start=1):
        futures.append(aside(batcher.do, item))
        eventually(lambda waiting=count: batcher._waiting.qsize() == waiting, "the item waits", SECONDS)
    return futures


def hold(batcher: MicroBatcher[str, str], gate: Gate) -> Future[str]:
    """Keeps the batcher busy with an item of its own."""
    first = aside(batcher.do, "first")
    assert gate.begun.acquire(timeout=SECONDS)
    return first


def test_what_waits_is_done_together_in_the_order_in_which_it_came(eventually: Eventually) -> None:
    gate = Gate()
    batcher = MicroBatcher("grouping", gate.work)
    first = hold(batcher, gate)
    others = hand_in(batcher, "dbca", eventually)
    gate.open()
    assert first.result(SECONDS) == "FIRST"
    assert [other.result(SECONDS) for other in others] == ["D", "B", "C", "A"]
    assert gate.batches == [["first"], ["d", "b", "c", "a"]]


def test_an_item_that_finds_nobody_at_work_goes_on_alone() -> None:
    gate = Gate()
    gate.open()
    batcher = MicroBatcher("alone", gate.work)
    assert [batcher.do(item) for item in "abc"] == ["A", "B", "C"]
    assert gate.batches == [["a"], ["b"], ["c"]]


def failing_at(bad: str) -> Callable[[str], str]:
    def do(item: str) -> str:
        if item in bad:
            raise ValueError(f"{item} is bad")
        return item.upper()

    return do


def test_a_bad_item_spoils_nothing_but_itself(eventually: Eventually) -> None:
    gate = Gate(failing_at("b"))
    batcher = MicroBatcher("isolating", gate.work)
    first = hold(batcher, gate)
    good, bad, also_good = hand_in(batcher, "abc", eventually)
    gate.open()
    assert (first.result(SECONDS), good.result(SECONDS), also_good.result(SECONDS)) == ("FIRST", "A", "C")
    with pytest.raises(ValueError, match="b is bad"):
        bad.result(SECONDS)
    assert gate.batches == [["first"], ["a", "b", "c"], ["a"], ["b"], ["c"]]


def test_each_of_several_bad_items_gets_its_own_error(eventually: Eventually) -> None:
    gate = Gate(failing_at("ab"))
    batcher = MicroBatcher("errors", gate.work)
    hold(batcher, gate)
    futures = hand_in(batcher, "ab", eventually)
    gate.open()
    assert [str(future.exception(SECONDS)) for future in futures] == ["a is bad", "b is bad"]


def test_an_error_that_concerns_all_items_is_raised_for_each_and_none_is_tried_again(eventually: Eventually) -> None:
    gate = Gate(failing_at("a"))
    batcher = MicroBatcher("away", gate.work, concerns_all=lambda error: isinstance(error, ValueError))
    first = hold(batcher, gate)
    futures = hand_in(batcher, "abc", eventually)
    gate.open()
    assert first.result(SECONDS) == "FIRST"
    assert [str(future.exception(SECONDS)) for future in futures] == ["a is bad"] * 3
    assert gate.batches == [["first"], ["a", "b", "c"]]


def test_after_an_error_the_batcher_goes_on() -> None:
    gate = Gate(failing_at("b"))
    gate.open()
    batcher = MicroBatcher("going on", gate.work)
    with pytest.raises(ValueError, match="b is bad"):
        batcher.do("b")
    assert batcher.do("a") == "A"


def test_the_very_error_of_a_lone_item_is_raised() -> None:
    error = KeyError("the one")

    def work(items: Sequence[str]) -> list[str]:
        raise error

    with pytest.raises(KeyError) as raised:
        MicroBatcher("the very error", work).do("a")
    assert raised.value is error


@pytest.mark.parametrize("kind", [Panic, SystemExit, KeyboardInterrupt])
def test_after_a_panic_the_batcher_goes_on(kind: type[BaseException], eventually: Eventually) -> None:
    def work(items: Sequence[str]) -> Sequence[str]:
        if "b" in items:
            raise kind("the library is at fault")
        return items

    batcher = MicroBatcher("panicking", work)
    with pytest.raises(kind):
        batcher.do("b")
    assert aside(batcher.do, "a").result(SECONDS) == "a"


def test_what_follows_from_an_item_can_not_end_the_batcher() -> None:
    def panic(_: object) -> None:
        raise Panic

    gate = Gate()
    batcher = MicroBatcher("followed", gate.work)
    batcher.hand_in("a").add_done_callback(panic)
    gate.open()
    assert aside(batcher.do, "b").result(SECONDS) == "B"


def test_many_threads_each_get_their_own_result() -> None:
    lock = threading.Lock()
    done: list[int] = []
    together = threading.Barrier(16)

    def work(items: Sequence[int]) -> list[int]:
        assert lock.acquire(blocking=False), "two batches at a time"
        done.extend(items)
        lock.release()
        return [-item for item in items]

    batcher = MicroBatcher("many", work)

    def hand_in_many(thread: int) -> list[int]:
        together.wait(SECONDS)
        return [batcher.do(thread * 1000 + n) for n in range(50)]

    results = [each.result(SECONDS) for each in [aside(hand_in_many, thread) for thread in range(16)]]
    assert results == [[-(thread * 1000 + n) for n in range(50)] for thread in range(16)]
    assert sorted(done) == [thread * 1000 + n for thread in range(16) for n in range(50)]
    for thread in range(16):
        assert [item for item in done if item // 1000 == thread] == [thread * 1000 + n for n in range(50)]


def test_while_crowded_calls_begin_an_interval_apart() -> None:
    began: list[float] = []

    def work(items: Sequence[str]) -> Sequence[str]:
        began.append(time.monotonic())
        return items

    batcher = MicroBatcher("crowded", work, interval_seconds=0.05)
    before = time.monotonic()
    batcher.do("a")
    batcher.do("b")
    assert began[1] >= before + 0.05


def test_otherwise_nothing_is_waited_for() -> None:
    batcher: MicroBatcher[str, str] = MicroBatcher("quiet", list, interval_seconds=3600, crowded=lambda: False)
    assert [aside(batcher.do, item).result(SECONDS) for item in "abc"] == ["a", "b", "c"]
