"""`cotrail doctor`: what it says of servers that are right, of those that aren't, and of those that aren't there."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import Engine, text, update
from typer.testing import CliRunner, Result

from cotrail.cli.main import app
from cotrail.configuration.settings import Settings, settings
from cotrail.models.schema.deployment import deployment, own_version
from cotrail.services import diagnosing
from tests.integration.served_here import serving


@pytest.fixture
def doctor(
    database: str, servers: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Result]:
    """The command in this process, on the tests' servers."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    monkeypatch.setenv("COTRAIL_DATABASE_URL", database.replace("+psycopg", ""))
    monkeypatch.setenv("COTRAIL_BROKER_URL", servers.broker)
    settings.cache_clear()
    # Another module may have imported Celery's app, which has the broker of that time.
    from cotrail.workers.celery_app import app as celery_app

    monkeypatch.setitem(celery_app.conf, "broker_url", servers.broker)
    return lambda *arguments: CliRunner().invoke(app, arguments)


def found(result: Result) -> dict[tuple[str, str], tuple[str, str, str]]:
    lines = json.loads(result.stdout)["lines"]
    return {(each["part"], each["what"]): (each["verdict"], each["found"], each["do"]) for each in lines}


def test_servers_that_are_right_are_said_to_be_so_and_what_is_not_has_its_remedy(doctor: Callable[..., Result]) -> None:
    result = doctor("doctor", "--json")
    lines = found(result)
    for right in (
        ("PostgreSQL", "version"),
        ("PostgreSQL", "encoding"),
        ("PostgreSQL", "full_page_writes"),
        ("PostgreSQL", "version of the tables"),
        ("PostgreSQL", "clock"),
        ("Redis", "version"),
        ("Redis", "maxmemory-policy"),
        ("Redis", "identity"),
        ("Redis", "clock"),
        ("host", "cores"),
        ("host", "encoding"),
        ("models", "smollm2-135m"),
    ):
        assert lines[right][0] == "right", lines[right]
        assert not lines[right][2]
    assert lines["workers", "generation"][0] == "doubtful"
    assert lines["workers", "generation"][1:] == (
        "none",
        "`cotrail up`, or `cotrail worker generation` on any host, starts one",
    )
    assert lines["workers", "maintenance"][0] == "wrong", "nothing begins without"
    assert result.exit_code == 3
    printed = doctor("doctor")
    assert "wrong" in printed.stdout.splitlines()[-1]
    assert "cotrail worker maintenance" in printed.stdout


def test_servers_that_may_lose_what_they_took_are_found(
    doctor: Callable[..., Result], engine: Engine, servers: Settings
) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ALTER DATABASE by_hand SET synchronous_commit = off"))
        connection.execute(text("ALTER DATABASE by_hand SET extra_float_digits = 0"))
    with engine.begin() as connection:
        connection.execute(update(deployment).values(broker="another", broker_address="redis://elsewhere:6379/0"))
    with Redis(unix_socket_path=servers.broker.removeprefix("redis+socket://")) as redis:
        redis.config_set("maxmemory-policy", "allkeys-lru")
        try:
            lines = found(doctor("doctor", "--json"))
        finally:
            redis.config_set("maxmemory-policy", "noeviction")
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("ALTER DATABASE by_hand RESET ALL"))
            with engine.begin() as connection:
                connection.execute(update(deployment).values(broker=None, broker_address=None))
    assert lines["PostgreSQL", "synchronous_commit"][0] == "wrong"
    assert "may lose steps" in lines["PostgreSQL", "synchronous_commit"][2]
    assert "extra_float_digits=0" in lines["PostgreSQL", "defaults of sessions"][1]
    assert lines["Redis", "maxmemory-policy"][:2] == ("doubtful", "allkeys-lru")
    verdict, said, do = lines["Redis", "identity"]
    assert (verdict, said) == ("wrong", "not the one that maintenance works with, redis://elsewhere:6379/0")
    assert "COTRAIL_BROKER_URL" in do


def test_another_version_s_database_is_found(doctor: Callable[..., Result], engine: Engine) -> None:
    former = own_version()
    with engine.begin() as connection:
        connection.execute(update(deployment).values(release="999.0"))
    try:
        verdict, said, _ = found(doctor("doctor", "--json"))["PostgreSQL", "version of the tables"]
    finally:
        with engine.begin() as connection:
            connection.execute(update(deployment).values(release=former.release))
    assert verdict == "wrong"
    assert "belongs to cotrail 999.0" in said


def test_what_does_not_answer_is_found_and_hides_nothing_else(
    doctor: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COTRAIL_DATABASE_URL", f"postgresql://someone:secret@/x?host={tmp_path}")
    monkeypatch.setenv("COTRAIL_BROKER_URL", f"redis+socket://{tmp_path}/redis.sock")
    (tmp_path / "models.toml").write_text("[models.x")
    settings.cache_clear()
    result = doctor("doctor", "--json")
    lines = found(result)
    assert result.exit_code == 3
    assert lines["PostgreSQL", "it can be used"][0] == "wrong"
    assert lines["Redis", "it takes messages"][0] == "wrong"
    assert lines["models", "it can be used"][0] == "wrong"
    assert lines["host", "disk"][0] == "right"
    assert "secret" not in result.output


def test_that_workers_cannot_be_asked_is_found_too(
    doctor: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COTRAIL_BROKER_URL", f"redis+socket://{tmp_path}/redis.sock")
    settings.cache_clear()
    lines = found(doctor("doctor", "--json"))
    assert lines["workers", "they can be asked"][0] == "wrong"
    assert lines["PostgreSQL", "version"][0] == "right"


def test_little_room_is_found(doctor: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST_DISK", "LEAST_MEMORY", "LEAST_FILES"):
        monkeypatch.setattr(diagnosing, name, 2**60)
    lines = found(doctor("doctor", "--json"))
    assert lines["host", "disk"][0] == "wrong"
    assert "COTRAIL_HOME" in lines["host", "disk"][2]
    assert lines["host", "memory"][0] == lines["host", "open files"][0] == "doubtful"


def test_a_server_s_are_found_by_it(doctor: Callable[..., Result]) -> None:
    with serving() as address:
        there = found(doctor("--server", address, "doctor", "--json"))
    here = found(doctor("doctor", "--json"))
    assert there.keys() == here.keys()
