"""The process's connections to the store: one pool for all threads, which outlives a server that was away."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from cotrail.configuration.settings import settings
from cotrail.errors import UnavailableError
from cotrail.models.queries.runs import list_runs
from cotrail.services import store as kept_store
from cotrail.services.store import close_stores, open_store, reading, reading_from

pytestmark = pytest.mark.usefixtures("named")

OWN = text("SELECT pg_backend_pid()")
IDLE = text("SHOW idle_in_transaction_session_timeout")


@pytest.fixture
def named(store: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The store is the one that the settings name."""
    monkeypatch.setenv("COTRAIL_DATABASE_URL", store.url.render_as_string(hide_password=False))
    settings.cache_clear()
    yield
    close_stores()


def session() -> int:
    """The server's process for a call."""
    with reading() as connection:
        return int(connection.execute(OWN).scalar_one())


def test_calls_one_after_another_share_a_connection() -> None:
    first = session()
    assert session() == first
    with open_store() as engine, engine.connect() as connection:
        assert connection.execute(OWN).scalar_one() == first


def test_threads_share_a_pool_and_not_a_connection() -> None:
    together = Barrier(4)

    def asked(_: int) -> tuple[int, Engine]:
        with open_store() as engine, engine.connect() as connection:
            together.wait(60)
            return int(connection.execute(OWN).scalar_one()), engine

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(asked, range(4)))
    assert len({pid for pid, _ in found}) == 4
    assert len({id(engine.pool) for _, engine in found}) == 1


def test_a_connection_that_the_server_ended_meanwhile_is_replaced(store: Engine) -> None:
    ended = session()
    with store.connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": ended})
    assert session() != ended


def test_only_a_reader_s_transaction_may_be_idle_for_long_and_it_can_not_write() -> None:
    with reading() as connection:
        assert connection.execute(IDLE).scalar_one() == "0"
        assert list_runs(connection)
        with pytest.raises(DBAPIError, match="read-only transaction"):
            connection.execute(text("DELETE FROM runs"))
    with open_store() as engine, engine.connect() as connection:
        assert connection.execute(IDLE).scalar_one() == "10s"


def test_what_was_closed_is_opened_again() -> None:
    former = session()
    close_stores()
    assert session() != former


def test_a_database_that_is_not_there_is_named_and_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTRAIL_DATABASE_URL", "postgresql://nobody@127.0.0.1:9/nothing")
    settings.cache_clear()
    with pytest.raises(UnavailableError, match="COTRAIL_DATABASE_URL names doesn't answer"):
        session()


def test_a_connection_that_is_in_use_as_all_are_closed_is_closed_when_it_comes_back() -> None:
    with reading() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        close_stores()
        assert connection.execute(OWN).scalar_one()
    assert driver.closed


def test_what_only_reads_may_take_its_time(store: Engine) -> None:
    with reading_from(store) as connection:
        assert connection.execute(IDLE).scalar_one() == "0"
    services = Path(kept_store.__file__).parent
    hurried = {file.stem for file in services.rglob("*.py") if "engine.connect()" in file.read_text()}
    assert hurried == {"store", "tokens", "projects"}
