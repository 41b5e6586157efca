"""Searches of many threads become few requests."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from cotrail.engines.retrieval.elasticsearch.retriever import Combiner
from cotrail.errors import TransientStepError
from tests.conftest import Eventually

SECONDS = 30


class Held:
    """Work that waits until it is let through; it keeps every batch. `bad` gets an error of its own."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.begun = threading.Event()
        self.through = threading.Event()

    def work(self, items: Sequence[str]) -> list[str | Exception]:
        self.batches.append(list(items))
        self.begun.set()
        assert self.through.wait(SECONDS)
        if "worst" in items:
            raise LookupError("worst")
        return [ValueError(item) if item == "bad" else item.upper() for item in items]


def crowd(held: Held, combiner: Combiner[str, str], items: Sequence[str], eventually: Eventually) -> list[Future[str]]:
    """Hands the first item in, the others while it is at work, and lets everything through."""
    with ThreadPoolExecutor(len(items)) as threads:
        futures = [threads.submit(combiner.do, items[0])]
        assert held.begun.wait(SECONDS)
        for count, item in enumerate(items[1:], start=1):
            futures.append(threads.submit(combiner.do, item))
            eventually(lambda waiting=count: len(combiner._waiting) == waiting, "the item waits", SECONDS)
        held.through.set()
    return futures


def test_what_comes_during_the_work_is_done_together(eventually: Eventually) -> None:
    held = Held()
    futures = crowd(held, Combiner(held.work), ["a", "b", "c", "d"], eventually)
    assert [future.result() for future in futures] == ["A", "B", "C", "D"]
    assert held.batches == [["a"], ["b", "c", "d"]]


def test_an_items_error_is_its_own(eventually: Eventually) -> None:
    held = Held()
    _, bad, good = crowd(held, Combiner(held.work), ["a", "bad", "c"], eventually)
    with pytest.raises(ValueError, match="bad"):
        bad.result()
    assert good.result() == "C"


def test_what_the_work_raises_is_everybodys_and_ends_nothing(eventually: Eventually) -> None:
    held = Held()
    combiner = Combiner(held.work)
    first, *others = crowd(held, combiner, ["a", "worst", "c"], eventually)
    assert first.result() == "A"
    for other in others:
        with pytest.raises(LookupError, match="worst"):
            other.result()
    assert combiner.do("d") == "D"


def test_where_fewer_answers_come_than_were_asked_for_nobody_waits_for_ever(eventually: Eventually) -> None:
    held = Held()
    combiner = Combiner[str, str](lambda items: held.work(items)[:1])
    first, *others = crowd(held, combiner, ["a", "b", "c"], eventually)
    assert first.result() == "A"
    for other in others:
        with pytest.raises(TransientStepError, match="2 requests were sent at once, and 1 answers came back"):
            other.result()


def test_a_thread_alone_waits_for_nobody() -> None:
    held = Held()
    held.through.set()
    combiner = Combiner(held.work)
    assert [combiner.do(item) for item in "ab"] == ["A", "B"]
    assert held.batches == [["a"], ["b"]]
