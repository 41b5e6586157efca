"""The database by SQL: `cotrail sql`, and the queries and the program that the page on the store shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege
from sqlalchemy import Engine, create_engine, text

from cotrail.models.execution.ledger import Ledger
from cotrail.models.schema.deployment import reader_name
from cotrail.models.schema.migrating import migrate
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, STEPS, begin, run_to_end

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "store.md").read_text("utf-8")
ANSWERS, COSTS, FOUND, *_ = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def finished(engine: Engine) -> Engine:
    """The store with a run of three questions, all finished."""
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 3))
    return engine


@pytest.fixture(scope="module")
def reader(database: str) -> str:
    """The URL that `cotrail sql --url` prints."""
    return sql(create_engine(database), "--url").stdout.strip()


def sql(engine: Engine, *arguments: str, stdin: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
    """The command as a process, on the engine's database."""
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COTRAIL_DATABASE_URL": url, **variables}
    command = [sys.executable, "-m", "cotrail.cli.main", "sql", *arguments]
    return subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True, timeout=60)


def test_the_queries_of_the_page_are_answered(finished: Engine) -> None:
    with finished.connect() as connection:
        answers, costs, found = (connection.execute(text(query)).all() for query in (ANSWERS, COSTS, FOUND))
    assert [row.key for row in answers] == ["q0", "q1", "q2"]
    assert sum(row.steps for row in costs) == 3 * STEPS
    assert all(row.found_by <= 3 for row in found)
    assert found


def test_a_query_is_answered_with_psql_and_nothing_is_written_by_mistake(finished: Engine) -> None:
    assert sql(finished, "COPY (SELECT count(*) FROM questions) TO STDOUT").stdout == "3\n"
    refused = sql(finished, "DELETE FROM questions")
    assert refused.returncode == 1
    assert "read-only transaction" in refused.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM questions",
        "UPDATE runs SET desired_state = 'cancelled'",
        "TRUNCATE attempts",
        "INSERT INTO paragraphs VALUES ('d', 't', 't')",
        "SELECT nextval('steps_id_seq')",
        "SELECT id FROM runs FOR UPDATE",
        "LOCK TABLE runs",
        "CREATE TABLE further (id int)",
        "CREATE TEMPORARY TABLE further (id int)",
        "CREATE FUNCTION pg_temp.further() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION further() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE SCHEMA further",
        "CREATE ROLE further",
        "SELECT lo_create(0)",
        "SELECT lo_creat(-1)",
        "SELECT lo_from_bytea(0, 'x')",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "COPY (SELECT 1) TO '/tmp/further'",
        "SELECT pg_read_file('/etc/hostname')",
        "ALTER TABLE runs DISABLE TRIGGER ALL",
        "ALTER TABLE runs OWNER TO CURRENT_USER",
        "SET session_replication_role = replica",
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION postgres",
    ],
)
def test_a_session_that_lets_itself_write_can_not(finished: Engine, reader: str, statement: str) -> None:
    with psycopg.connect(reader) as connection:
        for evading in ("default_transaction_read_only = off", "ROLE NONE", "SESSION AUTHORIZATION DEFAULT"):
            connection.execute(f"SET {evading}")
        connection.commit()
        with pytest.raises(InsufficientPrivilege):
            connection.execute(statement)


def test_tables_and_views_made_later_can_be_read(finished: Engine) -> None:
    with finished.begin() as connection:
        connection.execute(text("CREATE TABLE later AS SELECT 7 AS id"))
        connection.execute(text("CREATE VIEW latest AS SELECT id FROM later"))
    try:
        assert sql(finished, "COPY (SELECT id FROM latest) TO STDOUT").stdout == "7\n"
    finally:
        with finished.begin() as connection:
            connection.execute(text("DROP TABLE later CASCADE"))


def test_the_local_stacks_psql_comes_before_one_on_the_path(finished: Engine, tmp_path: Path) -> None:
    old = tmp_path / "psql"
    old.write_text("#!/bin/sh\necho old\n")
    old.chmod(0o755)
    assert sql(finished, "COPY (SELECT 1) TO STDOUT", PATH=str(tmp_path)).stdout == "1\n"


def test_the_url_is_printed_for_other_programs_which_can_not_write_either(finished: Engine) -> None:
    url = sql(finished, "--url").stdout.strip()
    with psycopg.connect(url, options="-c default_transaction_read_only=off") as connection:
        assert connection.execute("SELECT count(*) FROM questions").fetchone() == (3,)
        with pytest.raises(InsufficientPrivilege):
            connection.execute("DELETE FROM questions")


def test_a_database_of_an_earlier_version_is_named_with_what_makes_the_role(finished: Engine) -> None:
    role = reader_name(str(finished.url.database))
    with finished.begin() as connection:
        connection.execute(text(f"DROP OWNED BY {role}"))
        connection.execute(text(f"DROP ROLE {role}"))
    refused = sql(finished, "SELECT 1")
    assert refused.returncode == 3
    assert f"has no role {role}" in refused.stderr
    migrate(finished.url.render_as_string(hide_password=False))
    assert sql(finished, "COPY (SELECT 1) TO STDOUT").stdout == "1\n"


def test_a_role_that_can_not_write_is_used_as_it_is(finished: Engine) -> None:
    with finished.begin() as connection:
        connection.execute(text("CREATE ROLE visitor LOGIN IN ROLE pg_read_all_data"))
    try:
        url = finished.url.set(drivername="postgresql", username="visitor").render_as_string(hide_password=False)
        assert sql(finished, "COPY (SELECT current_user) TO STDOUT", COTRAIL_DATABASE_URL=url).stdout == "visitor\n"
    finally:
        with finished.begin() as connection:
            connection.execute(text("DROP ROLE visitor"))


def test_a_database_that_does_not_answer_is_named_with_what_to_do(finished: Engine) -> None:
    refused = sql(finished, "SELECT 1", COTRAIL_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert refused.returncode == 3
    assert "check the URL and the server" in refused.stderr
