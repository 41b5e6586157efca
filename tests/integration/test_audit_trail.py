"""The audit trail of a real store: clean runs verify, and whatever is changed by SQL is named."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import make_url

from cotrail.actions import ACTIONS
from cotrail.audit.findings import Finding, Verification
from cotrail.audit.verifying import verify
from models.database import connect, migrate
from models.tables import AttemptOutcome, Base, QuestionStatus, RunState, StepState
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


AUDITED = {
    "experiments": "experiments.id = runs.experiment_id",
    "runs": "true",
    "questions": "questions.run_id = runs.id",
    "steps": "steps.run_id = runs.id",
    "attempts": "step_id IN (SELECT id FROM steps WHERE steps.run_id = runs.id)",
    "sentences": "step_id IN (SELECT id FROM steps WHERE steps.run_id = runs.id)",
    "paragraph_sets": "step_id IN (SELECT id FROM steps WHERE steps.run_id = runs.id)",
    "paragraphs": "paragraphs.digest IN (SELECT p.digest FROM paragraph_sets p JOIN steps s ON s.id = step_id WHERE run_id = runs.id)",
    "demonstrations": "demonstrations.digest IN (SELECT value #>> '{}' FROM jsonb_each(runs.demonstrations))",
}
"""The tables of the audit trail, and which of their rows are a run's."""

CHANGES: dict[str, tuple[str, ...]] = {
    "VARCHAR": ("{0} || 'x'", "''", "'x'"),
    "BIGINT": ("{0} + 1000", "{0} - 1", "7"),
    "DOUBLE PRECISION": ("{0} + 0.5", "0.25"),
    "BOOLEAN": ("NOT {0}",),
    "TIMESTAMP": ("{0} + interval '1 microsecond'", "now()"),
    "JSONB": ("jsonb_build_array({0})", "'{{\"other\": 1}}'", "{0} || '{{\"other\": 1}}'"),
}
"""What a column of a type is set to."""

ALSO = {
    ("runs", "state"): RunState,
    ("questions", "status"): QuestionStatus,
    ("steps", "state"): StepState,
    ("steps", "kind"): ACTIONS,
    ("attempts", "outcome"): AttemptOutcome,
}

UNCOVERED = {("runs", "digest", "NULL")}
"""A run without its digest is one that maintenance hasn't closed yet."""

ROWS = 4
"""How many rows of a table are changed, from its beginning and from its end."""


@contextmanager
def tampering(store: Engine) -> Iterator[Connection]:
    """A transaction in which nothing is refused, and of which nothing stays."""
    with store.connect() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        for name, table in connection.execute(text(CONSTRAINTS)).all():
            connection.execute(text(f'ALTER TABLE {table} DROP CONSTRAINT IF EXISTS "{name}" CASCADE'))
        for (name,) in connection.execute(text(INDEXES)).all():
            connection.execute(text(f'DROP INDEX "{name}"'))
        yield connection
        connection.rollback()


CONSTRAINTS = """
    SELECT conname, conrelid::regclass FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
    WHERE relnamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'p', 'u') AND relname <> 'alembic_version'
"""
INDEXES = """
    SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = 'public'::regnamespace AND indisunique AND NOT indisprimary
"""


def cases() -> Iterator[tuple[str, str, str]]:
    """Each column, and each thing that it is set to."""
    for table in AUDITED:
        for column in Base.metadata.tables[table].columns:
            kind = str(column.type.compile(postgresql.dialect())).split(" WITH")[0]
            values = ["{0} + 1000"] if column.name == "id" and kind == "BIGINT" else [*CHANGES[kind]]
            values = [*values, *(f"'{value}'" for value in ALSO.get((table, column.name), ()))]
            for value in [*values, *(["NULL"] if column.nullable else [])]:
                if (table, column.name, value) not in UNCOVERED:
                    yield table, column.name, value


def test_whatever_column_is_changed_its_row_is_named(store: Engine) -> None:
    missed = []
    checked = 0
    with tampering(store) as connection:
        for run in CLOSED:
            for table, column, value in cases():
                for row in rows_of(connection, table, run):
                    try:
                        said = changed(connection, run, table, column, value, row)
                    except Exception as error:
                        missed.append((run, table, column, value, row, repr(error)))
                        continue
                    if said is None:
                        continue
                    checked += 1
                    if not said or table not in (said[0].table, *said[0].perhaps):
                        missed.append((run, table, column, value, row, [str(x) for x in said[:2]]))
    for m in missed[:400]:
        print(m)
    assert not missed, (len(missed), checked)


def rows_of(connection: Connection, table: str, run: str) -> list[str]:
    """Some rows of a run, by where they are."""
    query = f"SELECT {table}.ctid::text FROM {table}{'' if table == 'runs' else ', runs'} WHERE runs.id = :run AND {AUDITED[table]} ORDER BY 1"
    found = connection.execute(text(query), {"run": run}).scalars().all()
    return list(dict.fromkeys([*found[: ROWS // 2], *found[-(ROWS // 2) :]]))


def changed(
    connection: Connection, run: str, table: str, column: str, value: str, row: str
) -> tuple[Finding, ...] | None:
    """What a verification finds after a change; None where it changes nothing."""
    quoted = f'"{column}"'
    saved = connection.begin_nested()
    to = value.format(quoted)
    done = connection.execute(
        text(f"UPDATE {table} SET {quoted} = {to} WHERE ctid = :row AND {quoted} IS DISTINCT FROM ({to})"),
        {"row": row},
    )
    if not done.rowcount:
        saved.rollback()
        return None
    if (table, column) == ("runs", "id"):
        [run] = set(connection.execute(text("SELECT id FROM runs")).scalars()) - {*CLOSED, OPEN}
    found = verified(connection, run).findings
    saved.rollback()
    return found
