"""The odd store, filled once a test process, and who works on it: the service and the command line, in this process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import Engine

from cotrail.configuration.settings import Settings, settings
from cotrail.models.schema.database import connect
from tests.integration.asked_service import service
from tests.integration.conftest import made_database
from tests.integration.odd.store import fill


@pytest.fixture(scope="session")
def odd(servers: Settings) -> Iterator[Engine]:
    """The store; not the package's, since a process takes tests of other packages between those of this one."""
    engine = connect(made_database(servers, "odd"))
    try:
        fill(engine)
        yield engine
    finally:
        engine.dispose()


@pytest.fixture
def here(odd: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command line and the service work on the store, in an empty home."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    monkeypatch.setenv("COTRAIL_DATABASE_URL", odd.url.render_as_string(hide_password=False).replace("+psycopg", ""))
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.fixture
def client(here: None) -> Iterator[TestClient[Any]]:
    with service() as client:
        yield client
