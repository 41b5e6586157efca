"""`cotrail retry` and `prioritize`, and where a run's priority shows."""

import json
import re

import pytest
from sqlalchemy import Engine, select

from cotrail.core.results import Failure
from cotrail.errors import CorpusChangedError, InputError
from cotrail.models.execution.ledger import Ledger
from cotrail.models.schema.tables import questions, runs
from cotrail.systems.registry import find_system
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import LEASE, STEPS, begin, completed, run_to_end, unsent

RUN = "costless"
FAILURE = Failure(type="IndexBroken", message="no")


@pytest.fixture
def stopped(engine: Engine) -> Ledger:
    """A run with a failed question, two blocked ones and one that is finished."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    failing, *blocking, last = begin(engine, 4)
    [claim] = ledger.claim([failing])
    ledger.commit([completed(claim, FAILURE)])
    for claim in ledger.claim(blocking):
        assert claim is not None
        ledger.block(claim, CorpusChangedError("indexed again"))
    run_to_end(ledger, [last])
    return ledger


@pytest.mark.parametrize(
    ("options", "failed", "blocked"),
    [((), 1, 2), (("--failed", "--blocked"), 1, 2), (("--failed",), 1, 0), (("--blocked",), 0, 2)],
)
def test_retry_opens_what_is_asked_for_and_tells_how_many(
    options: tuple[str, ...], failed: int, blocked: int, stopped: Ledger, cotrail: Cotrail, query: Query
) -> None:
    said = json.loads(cotrail("retry", RUN, *options, "--json").stdout)
    assert said == {"run": RUN, "failed": failed, "blocked": blocked, "stuck": 0}
    assert run_to_end(stopped, unsent(stopped.engine)) == (failed + blocked) * STEPS
    statuses = [row["status"] for row in query(select(questions.c.status))]
    assert statuses.count("finished") == 1 + failed + blocked


def test_retry_says_what_goes_on_and_then_that_nothing_is_left(stopped: Ledger, cotrail: Cotrail) -> None:
    assert cotrail("retry", "latest").stdout.splitlines() == [
        "costless: 1 failed question tried again.",
        "costless: 2 blocked questions tried again.",
        "`cotrail watch costless` shows it.",
    ]
    run_to_end(stopped, unsent(stopped.engine))
    assert cotrail("retry", "latest").stdout == "costless: no question to try again.\n"


def test_retry_says_for_how_many_questions_nothing_can_be_done(engine: Engine, cotrail: Cotrail, query: Query) -> None:
    """A system may fail by an earlier failure that it caught: no step of its last ones failed."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    run_to_end(ledger, begin(engine))
    reason = {"type": "EmptyGenerationError", "message": "nothing"}
    query(questions.update().values(status="failed", reason=reason, answer=None).returning(questions.c.id))
    assert "1 failed question can't be tried again" in cotrail("retry", RUN).stdout


def test_a_cancelled_run_is_not_tried_again(stopped: Ledger, cotrail: Cotrail) -> None:
    assert cotrail("cancel", RUN).exit_code == 0
    refused = cotrail("retry", RUN)
    assert isinstance(refused.exception, InputError)
    assert "is cancelled, which is final" in str(refused.exception)


@pytest.mark.parametrize("number", [7, -2])
def test_a_priority_is_set_and_shown(number: int, engine: Engine, cotrail: Cotrail, query: Query) -> None:
    begin(engine)
    assert cotrail("prioritize", RUN, number).stdout == f"costless: has priority {number}.\n"
    assert query(select(runs.c.priority)) == [{"priority": number}]
    assert json.loads(cotrail("runs", "--json").stdout)[0]["priority"] == number
    assert f" {number} " in cotrail("runs").stdout
    assert json.loads(cotrail("show", RUN, "--json").stdout)["configuration"]["priority"] == number
    assert re.search(rf"priority +{number}\s", cotrail("show", RUN).stdout)


@pytest.mark.parametrize("number", ["high", "1.5", 2**31])
def test_a_priority_that_is_no_such_number_is_refused(number: object, engine: Engine, cotrail: Cotrail) -> None:
    begin(engine)
    refused = cotrail("prioritize", RUN, number)
    assert refused.exit_code == 2 or isinstance(refused.exception, InputError)


def test_a_run_that_is_over_has_no_priority_to_change(engine: Engine, cotrail: Cotrail) -> None:
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine))
    refused = cotrail("prioritize", RUN, 1)
    assert "all questions of run costless have ended" in str(refused.exception)
