"""The last migration runs while workers are in the middle of runs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic import command
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError, ProgrammingError
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from cotrail.audit.verification import verify
from cotrail.configuration.settings import Settings
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.replaying import replay_run
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.database import connect
from cotrail.models.schema.migrating import alembic_config, migrate
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, STEPS, begin, close_runs, run_to_end

FORMER = "0006"
"""The revision before the last."""

WORKERS, QUESTIONS = 3, 40


insisting = retry(
    retry=retry_if_exception_type((OperationalError, ProgrammingError)),
    wait=wait_fixed(0.05),
    stop=stop_after_delay(60),
)


class Insisting(Ledger):
    """A worker's ledger as `cotrail.tasks.runtime` uses it: what the database refuses for now is tried again."""

    claim = insisting(Ledger.claim)
    commit = insisting(Ledger.commit)


@pytest.fixture
def former(servers: Settings) -> Iterator[Engine]:
    """A database of the former revision."""
    url = make_url(servers.database)
    server = create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text("CREATE DATABASE former"))
    own = url.set(database="former").render_as_string(hide_password=False)
    migrate(own, FORMER)
    engine = connect(own, pool_size=2 * WORKERS)
    yield engine
    engine.dispose()
    with server.connect() as connection:
        connection.execute(text("DROP DATABASE former"))
    server.dispose()


def test_runs_that_are_under_way_go_on_while_the_schema_changes(former: Engine) -> None:
    """Workers that are started too early, before the migration, wait for the columns that it makes."""
    config = alembic_config(former.url.render_as_string(hide_password=False))
    command.upgrade(config, "head")
    due = begin(former, WORKERS * QUESTIONS)
    command.downgrade(config, FORMER)
    own_ledgers = [Insisting(former, f"w{n}", LEASE, find_system) for n in range(WORKERS)]
    with ThreadPoolExecutor() as pool:
        at_work = [pool.submit(run_to_end, ledger, due[n::WORKERS]) for n, ledger in enumerate(own_ledgers)]
        migrate(former.url.render_as_string(hide_password=False))
        assert sum(each.result() for each in at_work) == WORKERS * QUESTIONS * STEPS
    with former.connect() as connection:
        assert [
            question.status for question in replay_run(connection, "costless", find_system) if question.divergence
        ] == []


def test_migrations_make_the_models_tables_there_and_back_again(former: Engine) -> None:
    config = alembic_config(former.url.render_as_string(hide_password=False))
    for _ in range(2):
        command.upgrade(config, "head")
        command.check(config)
        command.downgrade(config, FORMER)


def test_questions_are_sealed_without_what_ended_them_where_the_column_goes(former: Engine) -> None:
    config = alembic_config(former.url.render_as_string(hide_password=False))
    command.upgrade(config, "head")
    ledger = Ledger(former, "w", LEASE, find_system)
    run_to_end(ledger, begin(former, 3))
    assert close_runs(former) == ["costless"]
    command.downgrade(config, "0012")
    command.upgrade(config, "head")
    assert close_runs(former) == ["costless"]
    with former.connect() as connection:
        assert connection.execute(text("SELECT DISTINCT ended_by FROM questions")).scalars().all() == [None]
        assert [str(finding) for finding in verify(read_trail(connection, "costless")).findings] == []
