"""The audit trail of a real store: clean runs verify, and whatever is changed by SQL is named."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.engine import make_url

from cotrail.audit.findings import Verification
from cotrail.audit.verifying import verify
from models.database import connect, migrate
from models.trail import read_trail
from tasks.settings import Settings
from tests.integration.recorded import CLOSED, OPEN, record


@pytest.fixture(scope="module")
def store(servers: Settings) -> Iterator[Engine]:
    """A database of its own with the runs of `recorded`; tests change it in transactions that they roll back."""
    url = make_url(servers.database)
    server = create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text("CREATE DATABASE trail"))
    server.dispose()
    own = url.set(database="trail").render_as_string(hide_password=False)
    migrate(own)
    engine = connect(own)
    try:
        record(engine)
        yield engine
    finally:
        engine.dispose()


def verified(connection: Connection, run: str) -> Verification:
    return verify(read_trail(connection, run))


@pytest.mark.parametrize("run", [*CLOSED, OPEN])
def test_a_run_that_nobody_changed_verifies(store: Engine, run: str) -> None:
    with store.connect() as connection:
        found = verified(connection, run)
        digest = connection.execute(text("SELECT digest FROM runs WHERE id = :run"), {"run": run}).scalar_one()
    assert not [str(finding) for finding in found.findings]
    assert (found.digest, found.closed) == (digest, run != OPEN)
