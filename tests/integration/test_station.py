"""What a worker process holds, on a real store."""

import logging
import threading
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from pydantic import SecretStr
from sqlalchemy import Engine, func, select, update

from models.advancing import Dispatch
from models.tables import attempts, questions, steps
from models.upkeep import expire_leases
from tasks.settings import Settings
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
        with station.claimed(message) as claim:
            station.commit(completed(claim))
        with station.claimed(lose(engine, message)) as again:
            station.commit(completed(again))
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
