"""The maintenance process: whatever it meets, it goes on, and leaves the lead where it can't do its work."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from psycopg.errors import AdminShutdown
from pydantic import SecretStr
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from cotrail.workers.app import app
from cotrail.workers.health import VARIABLE, problem_of
from cotrail.workers.leading import session
from cotrail.workers.maintenance import BrokerAwayError, Maintenance
from tests.conftest import Eventually


@pytest.fixture
def maintenance(database: str, engine: Engine, servers: Settings) -> Iterator[Maintenance]:
    own = {"database_url": SecretStr(database.replace("+psycopg", "")), "sweep_seconds": 0.05}
    made = Maintenance(servers.model_copy(update=own), app)
    yield made
    made.engine.dispose()


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "said"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@contextmanager
def running(maintenance: Maintenance) -> Iterator[None]:
    thread = threading.Thread(target=maintenance.run)
    thread.start()
    try:
        yield
    finally:
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
    assert all("an unforeseen error, trying again" in record.getMessage() for record in told)
    assert told[0].exc_info is not None


def test_a_database_that_is_away_for_long_is_asked_again_as_often_as_ever(
    maintenance: Maintenance, eventually: Eventually, monkeypatch: pytest.MonkeyPatch, said: Path
) -> None:
    looks: list[float] = []

    def away(_: Callable[[], None]) -> int:
        looks.append(time.monotonic())
        raise OperationalError("SELECT", {}, AdminShutdown())

    monkeypatch.setattr(maintenance, "sweep", away)
    with running(maintenance):
        eventually(lambda: len(looks) > 12, "it is asked again and again")
        assert not said.exists(), "it hasn't begun to work"
        monkeypatch.setattr(maintenance, "sweep", lambda _: 0)
        eventually(lambda: said.exists() and problem_of(said) is None, "it works")
        said.unlink()
        monkeypatch.setattr(maintenance, "sweep", away)
        eventually(lambda: said.exists() and problem_of(said) is None, "an outage isn't its fault")
    assert max(later - earlier for earlier, later in pairwise(looks[:12])) < 5


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
