"""What a worker process holds, on a real store."""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime

import pytest
from msgspec.structs import replace
from psycopg import OperationalError
from pydantic import SecretStr
from sqlalchemy import Engine, func, select, update

from cotrail.configuration.settings import Settings
from cotrail.models.execution.leases import Claim
from cotrail.models.execution.recovery import expire_leases
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import attempts, questions, steps
from cotrail.tasks.runtime import Runtime
from tests.conftest import Eventually
from tests.integration.stepping import begin, completed, disconnect

CONNECTIONS = 15
"""How many a worker's steps have."""


@pytest.fixture
def heartbeat_seconds() -> float:
    """So long that none comes during a test."""
    return 60


@pytest.fixture
def runtime(
    database: str, servers: Settings, heartbeat_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Runtime]:
    """One that sends nothing."""
    monkeypatch.setattr("cotrail.tasks.runtime.send", len)
    own = {"database_url": SecretStr(database), "heartbeat_seconds": heartbeat_seconds, "lease_seconds": 60}
    runtime = Runtime(servers.model_copy(update=own))
    yield runtime
    runtime.stop()
    runtime.close()
    disconnect(runtime)


def claimed_steps(engine: Engine) -> list[tuple[str, int, int]]:
    """Of each step its state, its epoch and how many attempts are on record."""
    counted = select(func.count()).where(attempts.c.step_id == steps.c.id).scalar_subquery()
    with engine.begin() as connection:
        rows = connection.execute(select(steps.c.state, steps.c.epoch, counted).order_by(steps.c.id))
        return [(state, epoch, count) for state, epoch, count in rows]


def lose(engine: Engine, message: Dispatch) -> Dispatch:
    """Has a step's first lease run out; returns the message that it is then claimed by."""
    with engine.begin() as connection:
        connection.execute(update(steps).values(lease_until=func.now() - func.make_interval(0, 0, 0, 0, 0, 0, 1)))
        assert expire_leases(connection) == [message.step_id]
    return replace(message, epoch=1)


def test_a_step_that_is_claimed_again_while_its_first_result_is_being_recorded_is_recorded(
    engine: Engine, runtime: Runtime, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    def recorded() -> list[tuple[int, str | None]]:
        with engine.begin() as connection:
            rows = connection.execute(select(attempts.c.epoch, attempts.c.outcome).order_by(attempts.c.epoch))
            return [(epoch, outcome) for epoch, outcome in rows]

    (message,) = begin(engine)
    with engine.begin() as holding:
        holding.execute(select(questions.c.id).with_for_update(key_share=True))
        with runtime.claimed(message) as held:
            runtime.commit(completed(held.claim if held else None))
        with runtime.claimed(lose(engine, message)) as again:
            runtime.commit(completed(again.claim if again else None))
    eventually(lambda: recorded() == [(1, "expired"), (2, "finished")], "the second result is recorded")
    runtime.close()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_who_brings_more_than_the_database_keeps_up_with_waits(engine: Engine, runtime: Runtime) -> None:
    happened = []

    def third() -> None:
        runtime.commit(completed(claims[2]))
        happened.append("third")

    messages = begin(engine, 3)
    claims = runtime.ledger.claim(messages)
    runtime._room = threading.BoundedSemaphore(2)
    waiting = threading.Thread(target=third)
    with engine.begin() as holding:
        holding.execute(select(questions.c.id).with_for_update(key_share=True))
        for claim in claims[:2]:
            runtime.commit(completed(claim))
        waiting.start()
        waiting.join(timeout=0.5)
        happened.append("the database goes on")
    waiting.join(timeout=30)
    assert happened == ["the database goes on", "third"]
    runtime.close()
    with engine.begin() as connection:
        outcomes = connection.execute(select(attempts.c.outcome)).scalars().all()
    assert outcomes == ["finished"] * 3


def test_a_step_that_was_claimed_ahead_is_claimed_once(engine: Engine, runtime: Runtime) -> None:
    (message,) = begin(engine)
    assert runtime.claim_ahead(message).result(timeout=30) is not None
    with runtime.claimed(message) as held:
        assert held is not None
        assert held.claim.step_id == message.step_id
        assert claimed_steps(engine) == [("running", 1, 1)]
    with runtime.claimed(message) as again:
        assert again is None


def test_of_two_messages_for_a_step_one_is_executed_whichever_comes_first(engine: Engine, runtime: Runtime) -> None:
    (message,) = begin(engine)
    answers = [runtime.claim_ahead(message), runtime.claim_ahead(message)]
    assert [answer.result(timeout=30) is None for answer in answers] == [False, True]
    with runtime.claimed(message) as first, runtime.claimed(message) as second:
        assert (first is None, second is None) == (False, True)


def test_what_was_claimed_ahead_and_is_not_begun_is_given_back_without_an_attempt(
    engine: Engine, runtime: Runtime
) -> None:
    begun, left, forgone = begin(engine, 3)
    for message in (begun, left, forgone):
        runtime.claim_ahead(message).result(timeout=30)
    with runtime.claimed(begun) as held:
        runtime.commit(completed(held.claim if held else None))
    runtime.give_back([forgone, begun])
    assert claimed_steps(engine)[1:3] == [("running", 1, 1), ("ready", 1, 0)]
    runtime.close()
    assert claimed_steps(engine)[:3] == [("finished", 1, 1), ("ready", 1, 0), ("ready", 1, 0)]


def test_a_claim_in_doubt_takes_nothing_from_one_made_ahead(
    engine: Engine, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    (message,) = begin(engine)
    ahead = runtime.claim_ahead(message)
    assert ahead.result(timeout=30) is not None
    claim, failures = runtime.ledger.claim, [OperationalError("the connection is lost")]

    def interrupted(messages: Sequence[Dispatch]) -> list[Claim | None]:
        if failures:
            raise failures.pop()
        return claim(messages)

    monkeypatch.setattr(runtime.ledger, "claim", interrupted)
    assert runtime.claim_ahead(message).result(timeout=30) is None
    assert failures == []
    assert claimed_steps(engine) == [("running", 1, 1)]
    with runtime.claimed(message) as kept:
        assert kept is ahead.result()


@pytest.mark.parametrize("heartbeat_seconds", [0.1])
def test_leases_are_renewed_while_steps_that_end_take_every_connection(
    engine: Engine, runtime: Runtime, eventually: Eventually
) -> None:
    """As hundreds do that are cancelled at once."""

    def lease_until() -> datetime:
        with engine.begin() as connection:
            until: datetime = connection.execute(select(steps.c.lease_until)).scalar_one()
            return until

    (message,) = begin(engine)
    with runtime.claimed(message), ExitStack() as taken:
        for _ in range(CONNECTIONS):
            taken.enter_context(runtime.ledger.engine.connect())
        first = lease_until()
        eventually(lambda: lease_until() > first, "the lease is renewed", 20)
