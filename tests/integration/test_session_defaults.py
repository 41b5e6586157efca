"""What a server, a database or a role sets for its sessions changes nothing; what can't hold every text is refused."""

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import URL, make_url

from cotrail.audit.verification import verify
from cotrail.configuration.settings import Settings
from cotrail.configuration.variables import LIBPQ, take_out
from cotrail.errors import InputError
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.database import connect, unanswered
from cotrail.models.schema.deployment import check_version
from cotrail.models.schema.migrating import migrate
from tests.integration.recorded import CLOSED, record

DEFAULTS = {
    "extra_float_digits": "0",
    "datestyle": "'SQL, DMY'",
    "intervalstyle": "iso_8601",
    "timezone": "'Asia/Kathmandu'",
    "bytea_output": "escape",
    "client_encoding": "'LATIN1'",
    "standard_conforming_strings": "off",
    "backslash_quote": "off",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "search_path": "elsewhere, public",
    "row_security": "off",
    "statement_timeout": "200",
    "lock_timeout": "200",
    "idle_in_transaction_session_timeout": "200",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "default_transaction_read_only": "on",
    "synchronous_commit": "off",
    "idle_session_timeout": "200",
    "transaction_timeout": "200",
}


@pytest.fixture(scope="module")
def server(servers: Settings) -> Iterator[Engine]:
    engine = create_engine(make_url(servers.database).set(database="postgres"), isolation_level="AUTOCOMMIT")
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def at(server: Engine) -> Iterator[URL]:
    """A database that sets everything, and in which another program has tables of the same names."""
    with server.connect() as connection:
        connection.execute(text("CREATE DATABASE with_defaults"))
    other = create_engine(server.url.set(database="with_defaults"))
    with other.begin() as connection:
        connection.execute(text("CREATE SCHEMA elsewhere"))
        connection.execute(text("CREATE TABLE elsewhere.runs (id int)"))
        connection.execute(text("CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('f00dcafe')"))
    other.dispose()
    with server.connect() as connection:
        for name, value in DEFAULTS.items():
            connection.execute(text(f"ALTER DATABASE with_defaults SET {name} = {value}"))
    yield server.url.set(database="with_defaults")
    with server.connect() as connection:
        connection.execute(text("DROP DATABASE with_defaults"))


def test_what_is_recorded_under_other_defaults_verifies_and_is_what_it_is_elsewhere(at: URL, store: Engine) -> None:
    url = at.render_as_string(hide_password=False)
    migrate(url)
    engine = connect(url)
    record(engine)
    with engine.connect() as connection, store.connect() as usual:
        check_version(connection)
        for run in CLOSED:
            assert verify(read_trail(connection, run)).findings == ()
            numbers = text(
                "SELECT score FROM paragraph_sets JOIN steps ON id = step_id WHERE run_id = :run ORDER BY step_id, rank"
            )
            assert connection.execute(numbers, {"run": run}).all() == usual.execute(numbers, {"run": run}).all()
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == ["f00dcafe"]
    engine.dispose()


def test_every_session_has_the_settings_that_it_has_elsewhere(at: URL, store: Engine) -> None:
    engine = connect(at.render_as_string(hide_password=False))
    with engine.connect() as connection, store.connect() as usual:
        for name in DEFAULTS:
            set_here, elsewhere = (each.execute(text(f"SHOW {name}")).scalar() for each in (connection, usual))
            assert set_here == elsewhere or name == "backslash_quote", name
    engine.dispose()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused_before_anything_is_written(
    server: Engine, encoding: str
) -> None:
    with server.connect() as connection:
        connection.execute(
            text(f"CREATE DATABASE narrow TEMPLATE template0 ENCODING '{encoding}' LOCALE_PROVIDER libc LOCALE 'C'")
        )
    narrow = server.url.set(database="narrow")
    try:
        with pytest.raises(InputError, match=f"encoding of the database narrow is {encoding}, .*createdb --encoding"):
            migrate(narrow.render_as_string(hide_password=False))
        address = narrow.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address) as plain:
            tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
            assert plain.execute(tables).fetchone() == (0,)
    finally:
        with server.connect() as connection:
            connection.execute(text("DROP DATABASE narrow"))


def test_libpq_s_variables_lead_nowhere_else(
    store: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = {"PGOPTIONS": "-c statement_timeout=1", "PGSERVICE": "other", "PGTARGETSESSIONATTRS": "standby"}
    for name, value in foreign.items():
        monkeypatch.setenv(name, value)
    take_out(LIBPQ)
    engine = connect(store.url.render_as_string(hide_password=False))
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM runs")).scalar()
    engine.dispose()
    (said,) = caplog.messages
    assert "variables of libpq's" in said
    assert "(PGOPTIONS, PGSERVICE, PGTARGETSESSIONATTRS)" in said
    assert "COTRAIL_DATABASE_URL" in said


def test_a_statement_that_somebody_cancelled_is_an_outage(store: Engine) -> None:
    with store.connect() as connection:
        connection.execute(text("SET LOCAL statement_timeout = 1"))
        with pytest.raises(Exception, match="canceling statement") as caught:
            connection.execute(text("SELECT pg_sleep(60)"))
        assert unanswered(caught.value)


def test_a_database_without_its_guards_is_refused(server: Engine, database: str) -> None:
    name = make_url(database).database
    with server.connect() as connection:
        connection.execute(text(f"ALTER DATABASE {name} SET session_replication_role = replica"))
    engine = connect(database)
    try:
        with pytest.raises(InputError, match="nothing guards the record; take that default away"):
            engine.connect()
    finally:
        engine.dispose()
        with server.connect() as connection:
            connection.execute(text(f"ALTER DATABASE {name} RESET session_replication_role"))


def test_what_is_committed_is_on_disk_whatever_the_database_sets(at: URL) -> None:
    engine = connect(at.render_as_string(hide_password=False))
    with engine.connect() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"
    engine.dispose()
