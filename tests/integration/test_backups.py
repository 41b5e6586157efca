"""A dump that is taken while runs are under way is a store in which they go on and come to the same end."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, func, text, update
from sqlalchemy.engine import make_url

from cotrail.audit.verification import verify
from cotrail.configuration.settings import Settings
from cotrail.models.execution.admission import admit
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import expire_leases, take_unsent
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.database import connect
from cotrail.models.schema.migrating import migrate
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import steps
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, STEPS, begin, close_runs, completed, run_to_end
from tests.upgrades.keeping import postgres

RUNS = ("busy", "begun")
STORED = """
    SELECT run_id, key, answer, status, (
        SELECT json_agg((sequence, kind, fingerprint, steps.state, result) ORDER BY sequence)
        FROM steps WHERE question_id = questions.id
    ) FROM questions ORDER BY run_id, key
"""


@pytest.fixture
def restored(servers: Settings) -> Iterator[Engine]:
    """An empty database beside the tests' own."""
    url = make_url(servers.database)
    server = create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text("CREATE DATABASE restored"))
    engine = connect(url.set(database="restored").render_as_string(hide_password=False))
    yield engine
    engine.dispose()
    with server.connect() as connection:
        connection.execute(text("DROP DATABASE restored"))
    server.dispose()


def stored(engine: Engine) -> list[Any]:
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(STORED))]


def finish(engine: Engine) -> None:
    """Carries out what is left, as maintenance and workers would after a restart."""
    with engine.begin() as connection:
        connection.execute(update(steps).where(steps.c.state == StepState.RUNNING).values(lease_until=func.now()))
    with engine.begin() as connection:
        expire_leases(connection)
        connection.execute(update(steps).where(steps.c.state == StepState.READY).values(sent_at=None))
    while True:
        with engine.begin() as connection:
            due = admit(connection)
            due += (
                message for kind in ("retrieve", "reason", "read") for message in take_unsent(connection, kind, 1000)
            )
        if not run_to_end(Ledger(engine, "later", LEASE, find_system), due):
            break
    close_runs(engine)


def test_a_dump_of_a_live_run_is_a_store_that_goes_on(
    engine: Engine, restored: Engine, servers: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "cotrail.dump"
    ledger = Ledger(engine, "w", LEASE, find_system)
    claims = ledger.claim(begin(engine, 6, id="begun"))
    following = ledger.commit([completed(claim) for claim in claims[:3]])
    ledger.claim([message for messages in following for message in messages][:2])
    with ThreadPoolExecutor() as pool:
        busy = pool.submit(run_to_end, Ledger(engine, "busy", LEASE, find_system), begin(engine, 60, id="busy"))
        postgres("pg_dump", servers.home, "--format=custom", f"--file={file}", "by_hand")
        assert busy.result() == 60 * STEPS
    postgres(
        "pg_restore",
        servers.home,
        "--exit-on-error",
        "--single-transaction",
        "--no-owner",
        "--no-privileges",
        "--dbname=restored",
        str(file),
    )
    migrate(restored.url.render_as_string(hide_password=False))
    assert {row[3] for row in stored(restored)} >= {"open"}
    finish(engine)
    finish(restored)
    assert stored(restored) == stored(engine)
    assert {row[3] for row in stored(restored)} == {"finished"}
    with restored.connect() as connection:
        for run in RUNS:
            assert [
                question.divergence for question in replay_run(connection, run, find_system) if question.divergence
            ] == []
            assert [str(finding) for finding in verify(read_trail(connection, run)).findings] == []


def test_a_restored_store_guards_its_record_as_the_first_did(
    engine: Engine, restored: Engine, servers: Settings, tmp_path: Path
) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 1, id="ended"))
    dumped = postgres("pg_dump", servers.home, "--no-privileges", "by_hand")
    postgres("psql", servers.home, "--quiet", "--set=ON_ERROR_STOP=1", "restored", given=dumped)
    with restored.connect() as connection, pytest.raises(Exception, match="it is part of the audit trail"):
        connection.execute(text("UPDATE steps SET result = '{}'"))
