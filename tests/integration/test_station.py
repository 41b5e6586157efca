"""What a worker process holds, on a real store."""

import logging
import threading
from collections.abc import Iterator, Sequence

import pytest
from msgspec.structs import replace
from psycopg import OperationalError
from pydantic import SecretStr
from sqlalchemy import Engine, func, select, update

from configuration.settings import Settings
from models.execution.claims import Claim
from models.execution.recovery import expire_leases
from models.records.dispatch import Dispatch
from models.schema.tables import attempts, questions, steps
from tasks.station import Station
from tests.conftest import Eventually
from tests.integration.stepping import begin, completed


@pytest.fixture
def station(database: str, servers: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Station]:
    """One that sends nothing, and gives no sign of life."""
    monkeypatch.setattr("tasks.station.send", len)
    own = {"database_url": SecretStr(database), "heartbeat_seconds": 60, "lease_seconds": 60}
    station = Station(servers.model_copy(update=own))
    yield station
    station.stop()
    station.close()
    station.ledger.engine.dispose()


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
    engine: Engine, station: Station, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    def recorded() -> list[tuple[int, str | None]]:
        with engine.begin() as connection:
            rows = connection.execute(select(attempts.c.epoch, attempts.c.outcome).order_by(attempts.c.epoch))
            return [(epoch, outcome) for epoch, outcome in rows]

    (message,) = begin(engine)
    with engine.begin() as holding:
        holding.execute(select(questions.c.id).with_for_update(key_share=True))
        with station.claimed(message) as held:
            station.commit(completed(held.claim if held else None))
        with station.claimed(lose(engine, message)) as again:
            station.commit(completed(again.claim if again else None))
    eventually(lambda: recorded() == [(1, "expired"), (2, "finished")], "the second result is recorded")
    station.close()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_who_brings_more_than_the_database_keeps_up_with_waits(engine: Engine, station: Station) -> None:
    happened = []

    def third() -> None:
        station.commit(completed(claims[2]))
        happened.append("third")

    messages = begin(engine, 3)
    claims = station.ledger.claim(messages)
    station._room = threading.BoundedSemaphore(2)
    waiting = threading.Thread(target=third)
    with engine.begin() as holding:
        holding.execute(select(questions.c.id).with_for_update(key_share=True))
        for claim in claims[:2]:
            station.commit(completed(claim))
        waiting.start()
        waiting.join(timeout=0.5)
        happened.append("the database goes on")
    waiting.join(timeout=30)
    assert happened == ["the database goes on", "third"]
    station.close()
    with engine.begin() as connection:
        outcomes = connection.execute(select(attempts.c.outcome)).scalars().all()
    assert outcomes == ["finished"] * 3


def test_a_step_that_was_claimed_ahead_is_claimed_once(engine: Engine, station: Station) -> None:
    (message,) = begin(engine)
    assert station.claim_ahead(message).result(timeout=30) is not None
    with station.claimed(message) as held:
        assert held is not None
        assert held.claim.step_id == message.step_id
        assert claimed_steps(engine) == [("running", 1, 1)]
    with station.claimed(message) as again:
        assert again is None


def test_of_two_messages_for_a_step_one_is_executed_whichever_comes_first(engine: Engine, station: Station) -> None:
    (message,) = begin(engine)
    answers = [station.claim_ahead(message), station.claim_ahead(message)]
    assert [answer.result(timeout=30) is None for answer in answers] == [False, True]
    with station.claimed(message) as first, station.claimed(message) as second:
        assert (first is None, second is None) == (False, True)


def test_what_was_claimed_ahead_and_is_not_begun_is_given_back_without_an_attempt(
    engine: Engine, station: Station
) -> None:
    begun, left, forgone = begin(engine, 3)
    for message in (begun, left, forgone):
        station.claim_ahead(message).result(timeout=30)
    with station.claimed(begun) as held:
        station.commit(completed(held.claim if held else None))
    station.forgo([forgone, begun])
    assert claimed_steps(engine)[1:3] == [("running", 1, 1), ("ready", 1, 0)]
    station.close()
    assert claimed_steps(engine)[:3] == [("finished", 1, 1), ("ready", 1, 0), ("ready", 1, 0)]


def test_a_claim_in_doubt_takes_nothing_from_one_made_ahead(
    engine: Engine, station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    (message,) = begin(engine)
    ahead = station.claim_ahead(message)
    assert ahead.result(timeout=30) is not None
    claim, failures = station.ledger.claim, [OperationalError("the connection is lost")]

    def interrupted(messages: Sequence[Dispatch]) -> list[Claim | None]:
        if failures:
            raise failures.pop()
        return claim(messages)

    monkeypatch.setattr(station.ledger, "claim", interrupted)
    assert station.claim_ahead(message).result(timeout=30) is None
    assert failures == []
    assert claimed_steps(engine) == [("running", 1, 1)]
    with station.claimed(message) as kept:
        assert kept is ahead.result()
