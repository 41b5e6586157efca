"""The database by SQL: `cotrail sql`, and the queries and the program that the page on the store shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from cotrail.systems.registry import find_system
from models.execution.ledger import Ledger
from tests.integration.stepping import LEASE, STEPS, begin, run_to_end

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "store.md").read_text("utf-8")
ANSWERS, COSTS, FOUND, *_ = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def finished(engine: Engine) -> Engine:
    """The store with a run of three questions, all finished."""
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 3))
    return engine


def sql(engine: Engine, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """The command as a process, on the engine's database."""
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COTRAIL_DATABASE_URL": url, **variables}
    command = [sys.executable, "-m", "cli.main", "sql", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_the_queries_of_the_page_are_answered(finished: Engine) -> None:
    with finished.connect() as connection:
        answers, costs, found = (connection.execute(text(query)).all() for query in (ANSWERS, COSTS, FOUND))
    assert [row.key for row in answers] == ["q0", "q1", "q2"]
    assert sum(row.steps for row in costs) == 3 * STEPS
    assert all(row.found_by <= 3 for row in found)
    assert found


def test_a_query_is_answered_with_psql_and_nothing_can_be_written(finished: Engine) -> None:
    assert sql(finished, "COPY (SELECT count(*) FROM questions) TO STDOUT").stdout == "3\n"
    refused = sql(finished, "DELETE FROM questions")
    assert refused.returncode == 1
    assert "read-only transaction" in refused.stderr


def test_where_there_is_no_psql_the_local_stacks_is_taken(finished: Engine, tmp_path: Path) -> None:
    assert sql(finished, "COPY (SELECT 1) TO STDOUT", PATH=str(tmp_path)).stdout == "1\n"


def test_the_url_is_printed_for_other_programs(finished: Engine) -> None:
    url = sql(finished, "--url").stdout.strip()
    assert url == finished.url.set(drivername="postgresql").render_as_string(hide_password=False)


def test_a_database_that_does_not_answer_is_named_with_what_to_do(finished: Engine) -> None:
    refused = sql(finished, "SELECT 1", COTRAIL_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert refused.returncode == 3
    assert "check the URL and the server" in refused.stderr
