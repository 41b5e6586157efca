"""A worker's messages come to their threads with their steps claimed."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from celery.concurrency.prefork import TaskPool as Processes
from celery.concurrency.thread import TaskPool as Threads

from cotrail.models.records.steps import Dispatch
from cotrail.tasks.routing import Lease
from cotrail.workers.app import ClaimAhead, app


class Claiming:
    """In place of a runtime: claims when it is told to."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.asked: dict[Dispatch, Future[Lease | None]] = {}
        self.in_turn: dict[int, bool] = {}

    def claim_ahead(self, message: Dispatch, *, in_turn: bool = False) -> Future[Lease | None]:
        self.asked[message] = Future()
        self.in_turn[message.step_id] = in_turn
        return self.asked[message]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Claiming:
    made = Claiming()
    monkeypatch.setattr("cotrail.workers.app.current_runtime", lambda: made)
    return made


@pytest.fixture
def executed() -> list[Any]:
    return []


@pytest.fixture
def consumer(executed: list[Any]) -> Iterator[SimpleNamespace]:
    pool = Threads(limit=1)
    yield SimpleNamespace(app=app, pool=pool, on_task_request=executed.append)
    pool.on_stop()


def request(name: str, *arguments: object, queue: str = "") -> Any:
    delivery = {"routing_key": queue or name.removeprefix("cotrail.")}
    return SimpleNamespace(name=name, args=list(arguments), delivery_info=delivery)


def test_a_message_comes_to_a_thread_once_its_step_is_claimed(
    here: Claiming, consumer: SimpleNamespace, executed: list[Any]
) -> None:
    assert ClaimAhead(consumer).include(consumer)
    first, second = request("cotrail.reason", 7, 0), request("cotrail.retrieve", 8, 2)
    consumer.on_task_request(first)
    consumer.on_task_request(second)
    assert executed == []
    here.asked[Dispatch(8, 2, "retrieve")].set_result(None)
    assert executed == [second]
    here.asked[Dispatch(7, 0, "reason")].set_exception(OSError("the database is gone"))
    assert executed == [second, first]


@pytest.mark.parametrize(
    ("name", "arguments"), [("celery.ping", (1, 2)), ("cotrail.reason", ()), ("cotrail.read", ("a", 1))]
)
def test_what_is_no_step_comes_to_a_thread_at_once(
    here: Claiming, consumer: SimpleNamespace, executed: list[Any], name: str, arguments: tuple[object, ...]
) -> None:
    ClaimAhead(consumer).include(consumer)
    other = request(name, *arguments)
    consumer.on_task_request(other)
    assert executed == [other]
    assert here.asked == {}


def test_a_worker_that_is_to_stop_claims_and_begins_nothing_more(
    here: Claiming, consumer: SimpleNamespace, executed: list[Any]
) -> None:
    ClaimAhead(consumer).include(consumer)
    pending, late = request("cotrail.reason", 7, 0), request("cotrail.reason", 8, 0)
    consumer.on_task_request(pending)
    here.stopping.set()
    here.asked[Dispatch(7, 0, "reason")].set_result(None)
    consumer.on_task_request(late)
    assert executed == [late]
    assert list(here.asked) == [Dispatch(7, 0, "reason")]


def test_only_steps_of_models_that_compute_are_claimed_in_turn(here: Claiming, consumer: SimpleNamespace) -> None:
    ClaimAhead(consumer).include(consumer)
    for number, queue in enumerate(["reason", "reason.served", "read", "read.served", "retrieve", "entail"]):
        consumer.on_task_request(request(f"cotrail.{queue.removesuffix('.served')}", number, 0, queue=queue))
    assert list(here.in_turn.values()) == [True, False, True, False, False, False]


def test_nothing_is_claimed_for_other_processes(here: Claiming, executed: list[Any]) -> None:
    consumer = SimpleNamespace(app=app, pool=Processes(limit=1), on_task_request=executed.append)
    assert not ClaimAhead(consumer).include(consumer)
    consumer.on_task_request(asked := request("cotrail.reason", 7, 0))
    assert executed == [asked]
    assert here.asked == {}
