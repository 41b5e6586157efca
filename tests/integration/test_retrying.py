"""`cotrail retry` on a real store: what failed is executed again, and what failed before stays on record."""

from typing import Any

import pytest
from sqlalchemy import Engine, select

from cotrail.core.results import Failure
from cotrail.errors import CorpusChangedError
from cotrail.models.commands.retrying import Retried, retry
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import attempts, questions, runs, steps
from cotrail.systems.registry import find_system
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, STEPS, begin, close_runs, completed, run_to_end, unsent

pytestmark = pytest.mark.usefixtures("verified")

FAILURE = Failure(type="IndexBroken", message="no")


def _end(ledger: Ledger, message: Dispatch, outcome: Failure | None = None) -> list[Dispatch]:
    [claim] = ledger.claim([message])
    [following] = ledger.commit([completed(claim, outcome)])
    return following


def _fail(engine: Engine, asked: int = 1) -> Ledger:
    """A run whose first question's first step fails; the others are carried out."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    first, *others = begin(engine, asked)
    _end(ledger, first, FAILURE)
    run_to_end(ledger, others)
    return ledger


def test_a_failed_question_goes_on_from_the_step_that_failed(engine: Engine, query: Query) -> None:
    ledger = _fail(engine, 3)
    assert retry(engine, "costless", find_system, failed=True, blocked=True) == Retried(failed=1)
    assert run_to_end(ledger, unsent(engine)) == STEPS
    assert {row["status"] for row in query(select(questions.c.status))} == {"finished"}
    executions = select(attempts.c.epoch, attempts.c.outcome, attempts.c.error).where(attempts.c.step_id == 1)
    assert query(executions.order_by(attempts.c.epoch)) == [
        {"epoch": 1, "outcome": "failed", "error": {"type": "IndexBroken", "message": "no"}},
        {"epoch": 2, "outcome": "finished", "error": None},
    ]


def test_only_what_is_asked_for_is_tried_again(engine: Engine, query: Query) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    failing, blocking = ledger.claim(begin(engine, 2))
    assert blocking is not None
    ledger.commit([completed(failing, FAILURE)])
    ledger.block(blocking, CorpusChangedError("indexed again"))
    assert retry(engine, "costless", find_system, failed=False, blocked=True) == Retried(blocked=1)
    assert {row["status"] for row in query(select(questions.c.status))} == {"failed", "open"}
    assert retry(engine, "costless", find_system, failed=True, blocked=False) == Retried(failed=1)
    assert run_to_end(ledger, unsent(engine)) == 2 * STEPS


def test_a_failure_that_the_system_caught_stays_as_it_is(engine: Engine, query: Query) -> None:
    """IRCoT catches a model that writes nothing; here its reader fails later."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    [message] = begin(engine)
    [sentence] = _end(ledger, message)
    [reader] = _end(ledger, sentence, Failure(type="EmptyGenerationError", message="nothing"))
    _end(ledger, reader, FAILURE)
    assert retry(engine, "costless", find_system, failed=True, blocked=True) == Retried(failed=1)
    states = query(select(steps.c.kind, steps.c.state).order_by(steps.c.sequence))
    assert [(row["kind"], row["state"]) for row in states] == [
        ("retrieve", "finished"),
        ("reason", "failed"),
        ("read", "waiting"),
    ]


def test_a_run_that_was_closed_is_open_again_until_its_questions_have_ended(engine: Engine, query: Query) -> None:
    def close() -> Any:
        close_runs(engine)
        return query(select(runs.c.digest))[0]["digest"]

    ledger = _fail(engine)
    before = close()
    assert before is not None
    retry(engine, "costless", find_system, failed=True, blocked=True)
    assert close() is None
    run_to_end(ledger, unsent(engine))
    assert close() not in (None, before)
