"""The command line while the database is slow, or whoever reads its output."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from cotrail.services.runs.watching import LONGEST_PAUSE, POLL_SECONDS, pause_after
from tests.conftest import wait_until
from tests.integration.recorded import OPEN, PLAIN

SHORT = """
import cotrail.models.schema.database, cotrail.models.queries.traces
cotrail.models.schema.database.IDLE_SECONDS = 0.2
cotrail.models.queries.traces.CHUNK_QUESTIONS = 1
from cotrail.cli.main import main
main()
"""
"""The command line, with a short limit to idle transactions and a question a query."""


@pytest.fixture
def variables(store: Engine, tmp_path: Path) -> dict[str, str]:
    """The environment in which the command line uses the store."""
    url = store.url.render_as_string(hide_password=False)
    return {**os.environ, "COTRAIL_HOME": str(tmp_path), "COTRAIL_DATABASE_URL": url}


@pytest.fixture
def held(store: Engine) -> Iterator[None]:
    """Nobody can read the questions."""
    with store.begin() as connection:
        connection.execute(text("LOCK TABLE questions IN ACCESS EXCLUSIVE MODE"))
        yield


def test_a_run_that_is_slow_to_read_is_still_looked_at_every_few_seconds() -> None:
    assert pause_after(0.001) == POLL_SECONDS
    assert pause_after(0.2) == 2.0
    assert pause_after(200) == LONGEST_PAUSE


@pytest.mark.usefixtures("held")
def test_watching_says_so_while_the_database_takes_long(variables: dict[str, str]) -> None:
    command = [sys.executable, "-m", "cotrail.cli.main", "watch", OPEN]
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert "hasn't answered yet" in watching.stdout.readline()
        watching.kill()


def test_a_slow_reader_gets_the_whole_export(store: Engine, variables: dict[str, str]) -> None:
    command = [sys.executable, "-c", SHORT, "export", PLAIN]
    whole = subprocess.run(command, env=variables, stdout=subprocess.PIPE, check=True).stdout
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE) as exporting:
        assert exporting.stdout is not None
        fcntl.fcntl(exporting.stdout, fcntl.F_SETPIPE_SZ, 4096)
        wait_until(lambda: idle_for_a_second(store))
        assert exporting.stdout.read() == whole
    assert exporting.returncode == 0


def idle_for_a_second(store: Engine) -> bool:
    """Whether a transaction of the command line has done nothing for that long."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = :state"
    idle = f"{query} AND now() - state_change > '1 s'"
    with store.connect() as connection:
        return bool(connection.execute(text(idle), {"state": "idle in transaction"}).scalar_one())
