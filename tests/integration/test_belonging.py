"""Which processes work on a database: those of its version, and of its Redis; others stop, and say why."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from pydantic import SecretStr
from redis import Redis
from sqlalchemy import Engine, select, text, update

from cotrail.configuration.settings import Settings
from cotrail.core.results import Retrieved
from cotrail.errors import InputError, OutdatedError
from cotrail.models.execution.leases import Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.schema.deployment import MIGRATIONS, check_version, deployment, own_version
from cotrail.models.schema.migrating import migrate
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import steps
from cotrail.services.store import close_stores
from cotrail.systems.registry import find_system
from cotrail.tasks import broker_health
from cotrail.tasks.broker_health import Belonging
from cotrail.workers.app import app
from cotrail.workers.leading import session
from cotrail.workers.maintenance import Maintenance
from tests.conftest import Eventually
from tests.integration.conftest import Cotrail
from tests.integration.stepping import LEASE, begin

LATER = {"release": "999.0"}, {"revision": "9999"}, {"format": "99.0"}


@contextmanager
def belonging_to(engine: Engine, changes: dict[str, str]) -> Iterator[None]:
    """The database is another version's meanwhile."""
    with engine.connect() as connection:
        former = dict(connection.execute(select(deployment)).mappings().one())
    change(engine, changes)
    try:
        yield
    finally:
        change(engine, {name: former[name] for name in changes})


def change(engine: Engine, changes: Any) -> None:
    with engine.begin() as connection:
        connection.execute(update(deployment).values(changes))


@pytest.fixture
def redis(servers: Settings) -> Iterator[Redis]:
    path = servers.broker.removeprefix("redis+socket://")
    with Redis(unix_socket_path=path, decode_responses=True) as client:
        yield client
        client.delete("one:store", "other:store")


@pytest.fixture(autouse=True)
def _no_broker_yet(engine: Engine) -> Iterator[None]:
    change(engine, {"broker": None, "broker_address": None})
    yield
    change(engine, {"broker": None, "broker_address": None})


def test_the_version_of_this_code_is_that_of_its_last_migration_and_is_recorded_by_migrating(engine: Engine) -> None:
    assert own_version().revision == ScriptDirectory(str(MIGRATIONS)).get_current_head()
    with engine.connect() as connection:
        check_version(connection)


@pytest.mark.parametrize("changes", LATER, ids=lambda changes: next(iter(changes)))
def test_a_process_of_another_version_claims_records_and_submits_nothing(
    engine: Engine, changes: dict[str, str]
) -> None:
    ledger = Ledger(engine, "worker", LEASE, find_system)
    first, second = begin(engine, 2, id="asked")
    [claim] = ledger.claim([first])
    assert claim is not None
    done = Completion(claim=claim, outcome=Retrieved(hits=()), milliseconds=1)
    with belonging_to(engine, changes):
        with pytest.raises(OutdatedError, match="the database belongs to cotrail"):
            ledger.claim([second])
        with pytest.raises(OutdatedError, match="the database belongs to cotrail"):
            begin(engine, id="refused")
        ledger.commit([done])
        with engine.connect() as connection:
            recorded = connection.execute(select(steps.c.state).where(steps.c.id == first.step_id)).scalar()
        assert recorded == StepState.RUNNING
    ledger.commit([done])
    assert None not in ledger.claim([second])


def test_maintenance_of_another_version_ends(engine: Engine, database: str, servers: Settings) -> None:
    own = {"database_url": SecretStr(database.replace("+psycopg", "")), "sweep_seconds": 0.05}
    made = Maintenance(servers.model_copy(update=own), app)
    with belonging_to(engine, {"revision": "9999"}), pytest.raises(OutdatedError, match=r"belongs to cotrail .*9999"):
        made.run()
    made.engine.dispose()


def test_a_database_that_an_older_version_made_is_to_be_migrated(servers: Settings, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE deployment RENAME TO of_later"))
        with pytest.raises(OutdatedError, match=r"belongs to an older cotrail.*`cotrail migrate`"):
            check_version(connection)
        connection.rollback()


@pytest.mark.parametrize("changes", [{"format": "5"}, {"format": "5", "revision": "0023"}], ids=str)
def test_a_database_from_before_the_first_release_is_refused_and_left_as_it_is(
    engine: Engine, database: str, cotrail: Cotrail, changes: dict[str, str]
) -> None:
    with belonging_to(engine, changes):
        with engine.connect() as connection, pytest.raises(OutdatedError, match=r"before cotrail 1\.0.*empty database"):
            check_version(connection)
        with pytest.raises(InputError, match=r"before cotrail 1\.0.*empty database"):
            migrate(database)
        close_stores()
        shown = cotrail("runs")
        assert "before cotrail 1.0" in str(shown.exception), "no record is read by other rules"
        with engine.connect() as connection:
            recorded = connection.execute(select(*(deployment.c[name] for name in changes))).one()
    assert recorded._asdict() == changes


def test_tables_of_nobody_knows_which_version_are_refused(engine: Engine, database: str) -> None:
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE deployment RENAME TO aside"))
    try:
        with pytest.raises(InputError, match=r"before cotrail 1\.0"):
            migrate(database)
    finally:
        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE aside RENAME TO deployment"))


def test_migrating_takes_over_what_another_release_of_the_same_schema_left(engine: Engine, database: str) -> None:
    change(engine, {"release": "0.0.1"})
    migrate(database)
    with engine.connect() as connection:
        check_version(connection)


def test_a_process_with_another_redis_is_refused(
    engine: Engine, servers: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another prefix is as good as another Redis: no message of one's reaches the other.
    one, other = (Belonging(engine, servers.broker, prefix) for prefix in ("one:", "other:"))
    assert other.check(), "no maintenance process has led"
    one.lead()
    assert other.check() is False
    redis.set("other:store", str(redis.get("one:store")))
    assert other.check(), "it was empty, and is filled again"
    redis.delete("other:store")
    monkeypatch.setattr(broker_health, "REFILL_SECONDS", 0)
    other.check()
    with pytest.raises(OutdatedError, match=r"maintenance notifies through redis\+socket://.*COTRAIL_BROKER_URL"):
        other.check()
    one.close()
    other.close()


def test_a_redis_that_was_emptied_gets_the_same_token_again(engine: Engine, servers: Settings, redis: Redis) -> None:
    one = Belonging(engine, servers.broker, "one:")
    one.lead()
    token = redis.get("one:store")
    redis.delete("one:store")
    one.lead()
    assert redis.get("one:store") == token
    assert one.check()
    one.close()


def test_the_next_that_leads_may_bring_another_redis(engine: Engine, servers: Settings, redis: Redis) -> None:
    one, other = (Belonging(engine, servers.broker, prefix) for prefix in ("one:", "other:"))
    one.lead()
    other.lead()
    assert other.check()
    assert one.check() is False
    one.close()
    other.close()


def test_two_databases_with_one_redis_and_prefix_are_told_apart(
    engine: Engine, servers: Settings, redis: Redis
) -> None:
    one = Belonging(engine, servers.broker, "one:")
    one.lead()
    redis.set("one:store", "another's")
    with pytest.raises(OutdatedError, match="another database's processes use"):
        one.lead()
    one.close()


@pytest.fixture
def environment(database: str, servers: Settings, tmp_path: Path) -> dict[str, str]:
    """That of a process beside the tests' own, whose keys in Redis begin with `other:`."""
    return {
        **os.environ,
        "COTRAIL_HOME": str(tmp_path),
        "COTRAIL_DATABASE_URL": database.replace("+psycopg", ""),
        "COTRAIL_BROKER_URL": servers.broker,
        "COTRAIL_BROKER_PREFIX": "other:",
        "COTRAIL_READY_FILE": str(tmp_path / "ready"),
    }


COTRAIL = (sys.executable, "-m", "cotrail.cli.main", "worker")


def test_a_second_maintenance_process_with_another_redis_ends_and_says_why(
    engine: Engine, servers: Settings, redis: Redis, environment: dict[str, str], tmp_path: Path
) -> None:
    one = Belonging(engine, servers.broker, "one:")
    with session(engine, 60) as leader:
        assert leader.lead()
        one.lead()
        command = [*COTRAIL, "maintenance"]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250, check=False)
    one.close()
    assert ended.returncode == 2, ended.stderr
    assert "COTRAIL_BROKER_URL" in ended.stderr.splitlines()[-1]
    assert not (tmp_path / "ready").exists(), "what waits for it isn't told that it works"


def test_a_worker_ends_by_itself_where_the_database_is_migrated_and_no_such_one_starts(
    engine: Engine, environment: dict[str, str], tmp_path: Path, eventually: Eventually
) -> None:
    said = tmp_path / "log"
    command = [*COTRAIL, "retrieval"]
    with said.open("wb") as log, subprocess.Popen(command, env=environment, stdout=log, stderr=log) as worker:
        try:
            eventually((tmp_path / "ready").exists, "the worker is ready")
            with belonging_to(engine, {"release": "999.0"}):
                assert worker.wait(150) == 0
                assert "this process ends: the database belongs to cotrail 999.0" in said.read_text()
                again = subprocess.run(
                    command, env=environment, capture_output=True, text=True, timeout=250, check=False
                )
        finally:
            worker.kill()
    assert again.returncode == 2, again.stderr
    assert "the database belongs to cotrail 999.0" in again.stderr.splitlines()[-1]
