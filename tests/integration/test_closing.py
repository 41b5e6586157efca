"""Closing runs: their digest covers the tree over their questions, and one that can't be closed holds up no other."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import pytest
from sqlalchemy import Engine, event, text

from cotrail.audit.question_sequence import MerkleTree
from cotrail.audit.row_digests import run_digest
from cotrail.audit.verification import verify
from cotrail.core.results import Failure
from cotrail.models.commands.retrying import retry
from cotrail.models.execution.admission import close_run, runs_to_close
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.seals import amending
from cotrail.systems.registry import find_system
from cotrail.workers.housekeeping import Closing
from tests.conftest import Eventually
from tests.integration.stepping import LEASE, begin, close_runs, completed, run_to_end

FAILURE = Failure(type="IndexBroken", message="no")


def end(engine: Engine, asked: int, run: str, outcome: Failure | None = None) -> None:
    """A run whose questions have all ended; with an outcome, each by that of its first step."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    messages = begin(engine, asked, id=run)
    if outcome is None:
        run_to_end(ledger, messages)
    else:
        ledger.commit([completed(claim, outcome) for claim in ledger.claim(messages)])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 100])
def test_the_database_and_python_agree_on_the_digest_of_a_run_of_any_size(engine: Engine, size: int) -> None:
    end(engine, size, "sized", FAILURE)
    assert close_runs(engine) == ["sized"]
    with engine.connect() as connection:
        found = verify(read_trail(connection, "sized"))
        stored = connection.execute(text("SELECT digest FROM runs")).scalar_one()
    assert (found.findings, found.digest, found.closed) == ((), stored, True)


def test_a_run_without_questions_is_closed(engine: Engine) -> None:
    begin(engine, 0, id="empty")
    assert close_runs(engine) == ["empty"]
    with engine.connect() as connection:
        assert verify(read_trail(connection, "empty")).findings == ()


def test_questions_are_leaves_by_position_whatever_their_ids(engine: Engine) -> None:
    end(engine, 6, "turned", FAILURE)
    with engine.begin() as connection:
        amending(connection)
        connection.execute(text("UPDATE questions SET position = 5 - position"))
        digests = connection.execute(text("SELECT digest FROM questions ORDER BY id DESC")).scalars().all()
    assert close_run(engine, "turned")
    tree = MerkleTree()
    for digest in digests:
        tree.add(digest)
    with engine.connect() as connection:
        [run] = [record.row for record in read_trail(connection, "turned") if record.table == "runs"]
    assert run_digest(run, tree.root()) == run["digest"]


@contextmanager
def at_closing(engine: Engine, run: str, what: object) -> Iterator[None]:
    """Does something as the statement that closes a run is about to be executed, its snapshot taken before."""

    def before(_connection: object, cursor: object, statement: str, parameters: object, *_: object) -> None:
        if "RECURSIVE" in statement and isinstance(parameters, dict) and parameters.get("run") == run:
            assert callable(what)
            what(cursor)

    event.listen(engine, "before_cursor_execute", before)
    yield
    event.remove(engine, "before_cursor_execute", before)


def test_a_run_whose_questions_are_opened_again_meanwhile_is_not_closed(engine: Engine) -> None:
    end(engine, 3, "reopened", FAILURE)

    def reopen(cursor: object) -> None:
        cursor.execute("SELECT 1")  # type: ignore[attr-defined]
        retry(engine, "reopened", find_system, failed=True, blocked=False)

    with at_closing(engine, "reopened", reopen):
        assert not close_run(engine, "reopened")
    with engine.begin() as connection:
        assert runs_to_close(connection) == []
        assert connection.execute(text("SELECT digest FROM runs")).scalar_one() is None


def test_a_run_that_can_not_be_closed_holds_up_no_other_and_no_sweep(
    engine: Engine, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    for run in ("a-broken", "b-whole"):
        end(engine, 2, run)
    going_on = Event()

    def fail(cursor: object) -> None:
        assert going_on.wait(60)
        cursor.execute("SELECT repeat('x', 1073741824)")  # type: ignore[attr-defined]

    closing = Closing(engine, lambda *_: None)
    with at_closing(engine, "a-broken", fail), caplog.at_level(logging.WARNING):
        closing.start_due()
        closing.start_due()
        going_on.set()
        eventually(lambda: closed(engine) == ["b-whole"], "the other run is closed")
        closing.start_due()
    eventually(lambda: "a-broken can't be closed, trying again in" in caplog.text, "that is logged")
    assert closed(engine) == ["b-whole"]


def closed(engine: Engine) -> list[str]:
    with engine.begin() as connection:
        return list(connection.execute(text("SELECT id FROM runs WHERE digest IS NOT NULL ORDER BY id")).scalars())
