"""The maintenance process: whatever it meets, it goes on, and leaves the lead where it can't do its work."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine

from models.database import connect
from tasks.settings import Settings
from tests.conftest import Eventually
from workers.app import app
from workers.leading import session
from workers.maintenance import BrokerAwayError, Maintenance

Start = Callable[[Maintenance], None]


@pytest.fixture
def maintenance(database: str, engine: Engine, servers: Settings) -> Iterator[Maintenance]:
    own = {"database_url": SecretStr(database.replace("+psycopg", "")), "sweep_seconds": 0.05}
    made = Maintenance(servers.model_copy(update=own), app)
    yield made
    made.engine.dispose()


@contextmanager
def running(maintenance: Maintenance) -> Iterator[None]:
    thread = threading.Thread(target=maintenance.run)
    thread.start()
    yield
    maintenance.stop()
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize("error", [KeyError("nobody foresaw it"), MemoryError(), RecursionError("too deep")])
def test_what_nobody_foresaw_is_told_and_tried_again(
    maintenance: Maintenance,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    sweeps: list[int] = []

    def sweep(stay: Callable[[], None]) -> int:
        sweeps.append(1)
        if len(sweeps) < 3:
            raise error
        return 0

    monkeypatch.setattr(maintenance, "sweep", sweep)
    with running(maintenance):
        eventually(lambda: len(sweeps) > 5, "it goes on")
    told = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(told) == 2
    assert all("wasn't foreseen and is tried again" in record.getMessage() for record in told)
    assert told[0].exc_info is not None


def test_who_can_not_send_leaves_the_lead_to_others(
    maintenance: Maintenance, database: str, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = threading.Event()

    def sweep(stay: Callable[[], None]) -> int:
        swept.set()
        raise BrokerAwayError("it took none of 3 messages")

    monkeypatch.setattr(maintenance, "sweep", sweep)
    other = connect(database)
    with running(maintenance), session(other, 1.0) as standby:
        assert swept.wait(30)
        eventually(standby.lead, "another one leads")
    other.dispose()


def test_who_leads_goes_on_leading_and_the_others_stand_by(
    maintenance: Maintenance, database: str, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeps: list[int] = []

    def sweep(stay: Callable[[], None]) -> int:
        sweeps.append(1)
        stay()
        return 0

    monkeypatch.setattr(maintenance, "sweep", sweep)
    other = connect(database)
    with running(maintenance), session(other, 1.0) as standby:
        eventually(lambda: len(sweeps) > 1, "it leads")
        assert not standby.lead()
        before = len(sweeps)
        eventually(lambda: len(sweeps) > before + 2, "it goes on")
        assert not standby.lead()
    other.dispose()
