"""`cotrail migrate` and `cotrail sql` on a server that asks for passwords, beside modules named as those of cotrail."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url

from cotrail.configuration.settings import Settings

COTRAIL = Path(sys.executable).parent / "cotrail"
OWN = ("models", "tasks", "workers", "migrations", "alembic", "celery", "flower")
GUARDED = "local guarded all scram-sha-256\n"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def administrator(servers: Settings) -> Iterator[Engine]:
    """The server's own user; the database `guarded` is the role `operator`'s, and takes passwords only."""
    hba = servers.home / "postgres" / "pg_hba.conf"
    own = hba.read_text("utf-8")
    engine = create_engine(make_url(servers.database).set(database="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE ROLE operator LOGIN CREATEROLE PASSWORD 'first'"))
        connection.execute(text("CREATE ROLE stranger LOGIN PASSWORD 'first'"))
        connection.execute(text("CREATE DATABASE guarded OWNER operator"))
        hba.write_text(f"{GUARDED}{own}", "utf-8")
        connection.execute(text("SELECT pg_reload_conf()"))
        yield engine
        hba.write_text(own, "utf-8")
        connection.execute(text("SELECT pg_reload_conf()"))
    engine.dispose()


@pytest.fixture
def run(administrator: Engine, tmp_path: Path) -> Run:
    """Runs the installed command in a folder of modules that nobody may import."""
    for name in OWN:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('somebody else')\n")

    def run(*arguments: str, user: str = "operator", password: str = "first", database: str = "guarded") -> object:
        url = administrator.url.set(drivername="postgresql", username=user, password=password, database=database)
        environment = {**os.environ, "COTRAIL_DATABASE_URL": url.render_as_string(hide_password=False)}
        environment.pop("PYTHONPATH", None)
        command = [str(COTRAIL), *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)

    return run  # type: ignore[return-value]


def told(done: "subprocess.CompletedProcess[str]", code: int) -> str:
    """What a refused command prints, above the page that helps."""
    assert done.returncode == code, done
    line, _ = done.stderr.splitlines()
    return line


def test_the_tables_are_made_brought_up_to_date_and_left_as_they_are(run: Run, administrator: Engine) -> None:
    assert "no tables yet; `cotrail migrate` makes them" in told(run("runs"), 3)
    assert run("migrate").stdout.startswith("The tables are made (revision ")
    assert run("migrate").stdout.startswith("The database is up to date (revision ")
    done = json.loads(run("migrate", "--json").stdout)
    assert done["before"] == done["after"]


def test_what_an_operator_may_get_wrong_is_one_line(run: Run, administrator: Engine) -> None:
    run("migrate")
    assert "correct the user or the password" in told(run("migrate", password="wrong"), 3)
    assert "correct the user or the password" in told(run("migrate", user="nobody"), 3)
    assert "isn't on that server; make it" in told(run("migrate", user="postgres", database="absent"), 3)
    assert "may not do this" in told(run("migrate", user="stranger"), 3)
    assert "check the URL and the server" in told(
        subprocess.run(
            [str(COTRAIL), "migrate"],
            env={**os.environ, "COTRAIL_DATABASE_URL": "postgresql://operator:first@127.0.0.1:1/guarded"},
            capture_output=True,
            text=True,
        ),
        3,
    )


def test_a_schema_of_a_newer_version_is_left_alone(run: Run, administrator: Engine) -> None:
    run("migrate")
    guarded = create_engine(administrator.url.set(database="guarded", username="operator", password="first"))
    with guarded.begin() as connection:
        known = connection.execute(text("SELECT version_num FROM cotrail_version")).scalar_one()
        connection.execute(text("UPDATE cotrail_version SET version_num = '9999'"))
    assert f"revision 9999, and this cotrail knows those up to {known}" in told(run("migrate"), 2)
    with guarded.begin() as connection:
        connection.execute(text("UPDATE cotrail_version SET version_num = :known"), {"known": known})
    guarded.dispose()


def test_the_role_that_only_reads_has_a_password_that_follows_from_the_owners(run: Run, administrator: Engine) -> None:
    run("migrate")
    query = "COPY (SELECT current_user, count(*) FROM runs) TO STDOUT"
    assert run("sql", query).stdout == "guarded_reader\t0\n"
    assert "correct the user or the password" in told(run("runs", user="guarded_reader", password="first"), 3)
    with administrator.connect() as connection:
        connection.execute(text("ALTER ROLE operator PASSWORD 'second'"))
    try:
        assert "doesn't let in guarded_reader" in told(run("sql", query, password="second"), 3)
        assert run("migrate", password="second").returncode == 0
        assert run("sql", query, password="second").stdout == "guarded_reader\t0\n"
    finally:
        with administrator.connect() as connection:
            connection.execute(text("ALTER ROLE operator PASSWORD 'first'"))


def test_a_role_of_that_name_that_somebody_else_made_is_left_as_it_is(run: Run, administrator: Engine) -> None:
    run("migrate")
    with administrator.connect() as connection:
        connection.execute(text("COMMENT ON ROLE guarded_reader IS 'ours'"))
        before = connection.execute(text("SELECT * FROM pg_authid WHERE rolname = 'guarded_reader'")).one()
        assert run("migrate").returncode == 0
        assert connection.execute(text("SELECT * FROM pg_authid WHERE rolname = 'guarded_reader'")).one() == before
        connection.execute(text("COMMENT ON ROLE guarded_reader IS 'made by cotrail, for `cotrail sql`'"))
