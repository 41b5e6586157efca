"""The audit trail of a real store: clean runs verify, and whatever is changed by SQL is named."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, select, text, update
from sqlalchemy.exc import IntegrityError

from cotrail.audit.bundles import bundle_pieces, read_bundle, write_bundle
from cotrail.audit.findings import Finding, Verification
from cotrail.audit.records import STEP, Record, read_record, write_record
from cotrail.audit.row_digests import earlier_attempts, step_digest
from cotrail.audit.verification import verify
from cotrail.core.actions.registry import KINDS
from cotrail.errors import BundleError, InputError
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.base import Base
from cotrail.models.schema.seals import step_digest as sealing
from cotrail.models.schema.seals import texts
from cotrail.models.schema.states import AttemptOutcome, DesiredState, QuestionStatus, StepState
from cotrail.models.schema.tables import attempts, steps
from tests.integration.recorded import CANCELLED, CLOSED, FIRST, OPEN, PLAIN, SECOND


def verified(connection: Connection, run: str) -> Verification:
    return verify(read_trail(connection, run))


@pytest.mark.parametrize("run", [*CLOSED, OPEN])
def test_a_run_that_nobody_changed_verifies(store: Engine, run: str) -> None:
    with store.connect() as connection:
        found = verified(connection, run)
        digest = connection.execute(text("SELECT digest FROM runs WHERE id = :run"), {"run": run}).scalar_one()
    assert not [str(finding) for finding in found.findings]
    assert (found.digest, found.closed) == (digest, run != OPEN)


OF_STEPS = "JOIN questions ON questions.id = steps.question_id WHERE steps.run_id = :run"
WITHIN = f"JOIN steps ON steps.id = step_id {OF_STEPS}"
AUDITED = {
    "experiments": "experiments JOIN runs ON experiments.id = experiment_id WHERE runs.id = :run",
    "runs": "runs WHERE id = :run",
    "questions": "questions WHERE run_id = :run",
    "steps": f"steps {OF_STEPS}",
    "attempts": f"attempts {WITHIN}",
    "sentences": f"sentences {WITHIN}",
    "paragraph_sets": f"paragraph_sets {WITHIN}",
    "paragraphs": f"paragraphs WHERE digest IN (SELECT found.digest FROM paragraph_sets found {WITHIN})",
    "demonstrations": "demonstrations WHERE digest IN "
    "(SELECT value #>> '{}' FROM runs, jsonb_each(runs.demonstrations) WHERE id = :run)",
}
"""The tables of the audit trail, and which of their rows are a run's."""

CHANGES: dict[str, tuple[str, ...]] = {
    "String": ("coalesce({0}, '') || 'x'",),
    "BigInteger": ("coalesce({0}, 0) + 1000",),
    "Double": ("coalesce({0}, 0) + 0.5",),
    "Boolean": ("NOT {0}",),
    "TIMESTAMP": ("coalesce({0} + interval '1 microsecond', now())",),
    "JSONB": ("coalesce({0}, '{{}}') || '{{\"other\": 1}}'",),
}
"""What a column of a type is set to."""

ALSO: dict[tuple[str, str], Iterable[str]] = {
    ("runs", "desired_state"): DesiredState,
    ("questions", "status"): QuestionStatus,
    ("steps", "state"): StepState,
    ("steps", "kind"): KINDS,
    ("attempts", "outcome"): AttemptOutcome,
}

NAMES = {"questions": "key, NULL"} | dict.fromkeys(
    ("experiments", "runs", "paragraphs", "demonstrations"), "NULL, NULL"
)
"""What of `Place` a table has, but for those of steps."""

NAMING = {"id", "key", "run_id", "question_id", "step_id", "sequence", "position", "rank", "epoch"}

UNCOVERED = {("runs", "digest", "NULL")}
"""A run without its digest is one that maintenance hasn't closed yet."""

UNSEALED = {
    *(("runs", column) for column in ("served", "batched", "asked", "project")),
    ("experiments", "project"),
    ("steps", "ended_in"),
    ("questions", "changed_in"),
}
"""What only steers how a run's steps are asked, who sees it, and in which order readers see its rows."""

CHANGED = (PLAIN, CANCELLED, SECOND)
"""The runs that are changed."""

ROWS = 1
"""How many rows of a run are changed, from a table's beginning and from its end."""


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
    WHERE relnamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'p', 'u') AND relname <> 'cotrail_version'
"""
INDEXES = """
    SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = 'public'::regnamespace AND indisunique AND NOT indisprimary
"""


def cases() -> Iterator[tuple[str, str, str]]:
    """Each column, and each thing that it is set to."""
    for table in AUDITED:
        columns = Base.metadata.tables[table].columns
        for column in (each for each in columns if (table, each.name) not in UNSEALED):
            values = [
                *CHANGES[type(column.type).__name__],
                *(f"'{value}'" for value in ALSO.get((table, column.name), ())),
            ]
            for value in [*values, *(["NULL"] if column.nullable else [])]:
                if (table, column.name, value) not in UNCOVERED:
                    yield table, column.name, value


class Place(NamedTuple):
    """A row, and where it is: the key of its question and the sequence of its step where it has these."""

    ctid: str
    key: str | None
    sequence: int | None


@contextmanager
def undone(connection: Connection) -> Iterator[None]:
    saved = connection.begin_nested()
    yield
    saved.rollback()


def rows_of(connection: Connection, table: str, run: str) -> list[Place]:
    """The first and the last rows of a run."""
    query = (
        f"SELECT {table}.ctid::text, {NAMES.get(table, 'key, sequence')} FROM {AUDITED[table]} ORDER BY {table}.ctid"
    )
    found = [Place(*row) for row in connection.execute(text(query), {"run": run})]
    return list(dict.fromkeys([*found[:ROWS], *found[-ROWS:]]))


def change(connection: Connection, table: str, column: str, value: str, row: Place) -> bool:
    """Changes a column of a row; whether it is another value then."""
    to = value.format(f'"{column}"')
    statement = f'UPDATE {table} SET "{column}" = {to} WHERE ctid = :ctid AND "{column}" IS DISTINCT FROM ({to})'
    return connection.execute(text(statement), {"ctid": row.ctid}).rowcount > 0


def is_named(found: Verification, table: str, column: str, row: Place) -> None:
    """The first finding is this row; where that which names it was changed, at least its table."""
    assert found.findings, (table, column, row)
    first = found.findings[0]
    assert table in (first.table, *first.perhaps), (column, row, first)
    if column not in NAMING and first.question is not None:
        assert (first.question, first.step) == (row.key, row.sequence), (column, row, first)
    assert first.column in (None, column), (column, row, first)


def test_whatever_column_is_changed_its_row_is_named(store: Engine) -> None:
    checked = 0
    with tampering(store) as connection:
        for run in CHANGED:
            for table, column, value in cases():
                for row in rows_of(connection, table, run):
                    with undone(connection):
                        if change(connection, table, column, value, row):
                            checked += 1
                            found = verified(connection, f"{run}x" if (table, column) == ("runs", "id") else run)
                            is_named(found, table, column, row)
    assert checked > len(CHANGED) * 100


@pytest.mark.parametrize("table", [table for table in AUDITED if table != "runs"])
def test_a_row_that_is_removed_is_named(store: Engine, table: str) -> None:
    with tampering(store) as connection:
        for run in CHANGED:
            for row in rows_of(connection, table, run):
                with undone(connection):
                    connection.execute(text(f"DELETE FROM {table} WHERE ctid = :ctid"), {"ctid": row.ctid})
                    first = verified(connection, run).findings[0]
                    assert table in (first.table, *first.perhaps), first
                    assert first.what in ("removed", "changed"), first


@pytest.mark.parametrize("table", ["questions", "steps", "attempts", "sentences", "paragraph_sets"])
def test_a_row_that_is_added_is_named(store: Engine, table: str) -> None:
    """A copy of a row, with a place and an id of its own where it has such."""
    places = {"questions": "position", "steps": "sequence", "attempts": "epoch", "paragraph_sets": "rank"}
    own = dict.fromkeys(("id", places[table]) if table in ("questions", "steps") else (places.get(table),), "1000")
    columns = [column.name for column in Base.metadata.tables[table].columns]
    values = ", ".join(own.get(name, f'"{name}"') for name in columns)
    names = ", ".join(f'"{name}"' for name in columns)
    with tampering(store) as connection:
        for run in CHANGED:
            for row in rows_of(connection, table, run):
                with undone(connection):
                    added = f"INSERT INTO {table} ({names}) SELECT {values} FROM {table} WHERE ctid = :ctid"
                    connection.execute(text(added), {"ctid": row.ctid})
                    first = verified(connection, run).findings[0]
                    assert first.table == table, first


UNENDED = {
    "questions": ("status IN ('open', 'blocked')", "answer sentences collected weighing finished_at digest reason"),
    "steps": (
        "state IN ('waiting', 'ready', 'running')",
        "result failure finished_at prompt_tokens cached_prompt_tokens generated_tokens milliseconds adopted_from "
        "digest worker started_at lease_until",
    ),
    "attempts": ("outcome IS NULL", "outcome ended_at"),
}
"""Rows that haven't ended, and what they can't hold."""

MAY_HOLD = {
    ("questions", "blocked"): {"reason", "finished_at"},
    ("steps", "claimed"): {"worker", "started_at", "lease_until"},
}


def unended(connection: Connection, table: str) -> Iterator[tuple[str, set[str]]]:
    """The rows of the open run that haven't ended, and what each may hold nevertheless."""
    which, _ = UNENDED[table]
    kind = {"questions": "status", "steps": "CASE WHEN steps.epoch > 0 THEN 'claimed' END"}.get(table, "NULL")
    narrowed = AUDITED[table].replace("WHERE ", f"WHERE {table}.{which} AND ")
    for ctid, of in connection.execute(text(f"SELECT {table}.ctid::text, {kind} FROM {narrowed}"), {"run": OPEN}):
        yield ctid, MAY_HOLD.get((table, of), set())


@pytest.mark.parametrize("table", UNENDED)
def test_rows_that_have_not_ended_hold_nothing_of_an_end(store: Engine, table: str) -> None:
    checked = 0
    with tampering(store) as connection:
        for column in UNENDED[table][1].split():
            value = CHANGES[type(Base.metadata.tables[table].columns[column].type).__name__][0]
            for ctid, may_hold in list(unended(connection, table)):
                if column not in may_hold:
                    with undone(connection):
                        assert change(connection, table, column, value, Place(ctid, None, None))
                        found = verified(connection, OPEN).findings
                        assert {each.table for each in found} == {table}, (column, found)
                        checked += 1
    assert checked


@pytest.mark.parametrize("name", ["questions.answer", "steps.result", "steps.prompt_tokens"])
def test_the_database_refuses_an_end_of_rows_that_have_not_ended(store: Engine, name: str) -> None:
    table, column = name.split(".")
    value = CHANGES[type(Base.metadata.tables[table].columns[column].type).__name__][0]
    with store.connect() as connection:
        for ctid, _ in list(unended(connection, table)):
            with pytest.raises(IntegrityError, match=f"{table}_end_check"), connection.begin_nested():
                change(connection, table, column, value, Place(ctid, None, None))


def test_steps_and_questions_that_changed_places_are_named(store: Engine) -> None:
    with tampering(store) as connection:
        with undone(connection):
            of_question = "question_id IN (SELECT id FROM questions WHERE run_id = :run AND key = 'q0')"
            swap = f"UPDATE steps SET sequence = 5 - sequence WHERE sequence IN (2, 3) AND {of_question}"
            connection.execute(text(swap), {"run": PLAIN})
            found = verified(connection, PLAIN).findings
            assert {(each.table, each.what, each.column) for each in found} == {("steps", "reordered", "sequence")}
            assert (found[0].question, found[0].step) == ("q0", 2)
        with undone(connection):
            swap = "UPDATE questions SET position = 3 - position WHERE run_id = :run AND position IN (1, 2)"
            connection.execute(text(swap), {"run": PLAIN})
            found = verified(connection, PLAIN).findings
            assert [(each.table, each.what, each.question) for each in found] == [
                ("questions", "reordered", "q2"),
                ("questions", "reordered", "q1"),
            ]


def test_a_step_that_is_forged_with_its_digest_shows_in_what_follows_it(store: Engine) -> None:
    with tampering(store) as connection:
        for sequence, named in ((1, ("steps", 1)), (6, ("questions", None))):
            with undone(connection):
                forge(connection, sequence)
                first = verified(connection, FIRST).findings[0]
                assert (first.table, first.question, first.step) == (named[0], "q1", named[1])


def forge(connection: Connection, sequence: int) -> None:
    """Changes how long a step took, and its digest so that it agrees."""
    of_step = "run_id = :run AND sequence = :sequence AND question_id IN (SELECT id FROM questions WHERE key = 'q1')"
    where = {"run": FIRST, "sequence": sequence}
    connection.execute(text(f"UPDATE steps SET milliseconds = 1 WHERE {of_step}"), where)
    names = STEP
    row = connection.execute(select(*texts(steps, names)).where(text(of_step)), where).one()
    digest = step_digest(dict(zip(names, row, strict=True)), [])
    connection.execute(text(f"UPDATE steps SET digest = :digest WHERE {of_step}"), where | {"digest": digest})


@pytest.mark.parametrize("table", list(AUDITED))
def test_the_database_itself_refuses_to_change_what_is_final(store: Engine, table: str) -> None:
    column = next(iter(Base.metadata.tables[table].columns)).name
    for statement in (
        f"UPDATE {table} SET {column} = {column} WHERE ctid = :ctid",
        f"DELETE FROM {table} WHERE ctid = :ctid",
    ):
        with store.connect() as connection:
            row = rows_of(connection, table, FIRST)[0]
            with pytest.raises(IntegrityError, match="part of the audit trail"):
                connection.execute(text(statement), {"ctid": row.ctid})


@pytest.fixture(scope="module")
def bundle(store: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of a run."""
    path = tmp_path_factory.mktemp("bundles") / "plain.audit.jsonl.zst"
    with store.connect() as connection:
        write_bundle(path, bundle_pieces(read_trail(connection, PLAIN), PLAIN, "0"), PLAIN)
    return path


def lines_of(bundle: Path) -> list[bytes]:
    return [write_record(record) for record in read_bundle(bundle)]


def verified_lines(lines: Sequence[bytes]) -> tuple[Finding, ...]:
    return verify((read_record(line, number) for number, line in enumerate(lines, start=1)), bundled=True).findings


@pytest.mark.parametrize("run", [*CLOSED, OPEN])
def test_a_bundle_says_what_the_store_says(store: Engine, tmp_path: Path, run: str) -> None:
    path = tmp_path / "bundle"
    with store.connect() as connection:
        write_bundle(path, bundle_pieces(read_trail(connection, run), run, "0"), run)
        of_store = verified(connection, run)
    found = verify(read_bundle(path), bundled=True)
    assert (found.findings, found.run, found.digest) == ((), of_store.run, of_store.digest)
    assert found.records.items() >= of_store.records.items()


def test_a_bundle_is_never_written_over_another_file(store: Engine, bundle: Path) -> None:
    with store.connect() as connection, pytest.raises(InputError, match="never overwritten"):
        write_bundle(bundle, bundle_pieces(read_trail(connection, SECOND), SECOND, "0"), SECOND)
    assert verify(read_bundle(bundle), bundled=True).run == PLAIN


def test_every_line_of_a_bundle_counts(bundle: Path) -> None:
    """Whichever is removed, doubled or moved to the next place."""
    lines = lines_of(bundle)
    for number in range(0, len(lines), 7):
        gone = verified_lines([*lines[:number], *lines[number + 1 :]])
        doubled = verified_lines([*lines[: number + 1], *lines[number:]])
        assert gone, lines[number]
        assert doubled, lines[number]
        if number + 1 < len(lines):
            swapped = [*lines[:number], lines[number + 1], lines[number], *lines[number + 2 :]]
            assert verified_lines(swapped), lines[number]


def test_whatever_a_bundle_says_otherwise_is_found(bundle: Path) -> None:
    lines = lines_of(bundle)
    records = [read_record(line, 1) for line in lines]
    tables = {record.table: number for number, record in enumerate(records)}
    for table, number in tables.items():
        for name, value in records[number].row.items():
            changed = Record(table, records[number].row | {name: "7" if value != "7" else "8"})
            said = verified_lines([*lines[:number], write_record(changed), *lines[number + 1 :]])
            assert said, (table, name)


def test_a_file_that_is_cut_off_or_no_bundle_is_refused(tmp_path: Path, bundle: Path) -> None:
    for content in (bundle.read_bytes()[:-9], b"no bundle"):
        (tmp_path / "damaged").write_bytes(content)
        with pytest.raises(BundleError, match="damaged"):
            verify(read_bundle(tmp_path / "damaged"), bundled=True)
    for line in (b"{}", b'{"table": "steps", "row": {}}', b'{"table": "end", "row": {"records": null, "sha256": ""}}'):
        with pytest.raises(BundleError, match="line 3"):
            read_record(line, 3)


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@settings(max_examples=150, deadline=None)
@given(
    TEXTS,
    st.floats(allow_nan=False),
    JSON,
    st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)),
    st.integers(0, 99),
)
def test_the_database_and_python_agree_on_digests(
    connection: Connection, written: str, fraction: float, json: Any, at: datetime, number: int
) -> None:
    """Of a step with an earlier attempt, whose columns are these."""
    with undone(connection):
        earlier = {
            "epoch": 1,
            "worker": written,
            "error": json,
            "outcome": "retried",
            "ended_at": at.replace(tzinfo=UTC),
        }
        connection.execute(update(attempts).where(attempts.c.step_id == 1, attempts.c.epoch == 1).values(earlier))
        values = {"kind": written, "result": json, "milliseconds": fraction, "epoch": 2, "prompt_tokens": number}
        ended = {"finished_at": at.replace(tzinfo=UTC), "state": "finished"}
        connection.execute(update(steps).where(steps.c.id == 1).values(values | ended))
        connection.execute(update(steps).where(steps.c.id == 1).values(digest=sealing({})))
        rows = [record.row for record in read_trail(connection, PLAIN) if record.table in ("steps", "attempts")]
    step = rows[0]
    assert step["id"] == "1"
    assert step_digest(step, earlier_attempts(step, rows[1:3])) == step["digest"]


@pytest.fixture(scope="module")
def connection(store: Engine) -> Iterator[Connection]:
    with tampering(store) as connection:
        yield connection
