"""What ended questions, in the store: sealed where recorded, derived or absent where a former version ended them."""

import pytest
from sqlalchemy import Connection, Engine, select, update

from cotrail.audit.findings import Verification
from cotrail.audit.verification import verify
from cotrail.core.results import Failure
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.progress import read_ends
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.queries.traces import read_questions
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.seals import amending, question_digest, question_head
from cotrail.models.schema.tables import questions, runs
from cotrail.systems.registry import find_system
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, begin, close_runs, completed, run_to_end

RUN = "costless"
FAILURE = Failure(type="StepError", message="it can't be searched for")


@pytest.fixture
def ended(engine: Engine) -> Engine:
    """The store with a closed run of three questions: two have an answer, one failed."""
    ledger = Ledger(engine, "w", LEASE, find_system)
    first, *others = begin(engine, 3)
    [claim] = ledger.claim([first])
    ledger.commit([completed(claim, FAILURE)])
    run_to_end(ledger, others)
    assert close_runs(engine) == [RUN]
    return engine


@pytest.fixture
def former(ended: Engine) -> Engine:
    """The same as a former version left it: its digests know nothing of the column."""
    with ended.begin() as connection:
        amending(connection)
        connection.execute(update(runs).values(digest=None))
        connection.execute(update(questions).values(ended_by=None))
        connection.execute(update(questions).values(digest=question_digest(question_head(), {})))
    assert close_runs(ended) == [RUN]
    return ended


def verified(connection: Connection) -> Verification:
    return verify(read_trail(connection, RUN))


def test_every_question_says_what_ended_it(ended: Engine, query: Query) -> None:
    recorded = [row["ended_by"] for row in query(select(questions.c.ended_by).order_by(questions.c.position))]
    assert recorded == ["failure: StepError", "answer", "answer"]
    with ended.connect() as connection:
        assert read_ends(connection, RUN) == {"answer": 2, "failure: StepError": 1}
        assert [each.ended_by for each in read_questions(connection, RUN)] == recorded
        assert not verified(connection).findings


@pytest.mark.parametrize("forged", [None, "limit: sentences"])
def test_another_end_is_found_by_the_audit_and_by_the_replay(ended: Engine, forged: str | None) -> None:
    with ended.begin() as connection:
        amending(connection)
        connection.execute(update(questions).where(questions.c.key == "q1").values(ended_by=forged))
    with ended.connect() as connection:
        [finding] = verified(connection).findings
        assert (finding.question, finding.column) == ("q1", "ended_by")
        differing = [each.key for each in replay_run(connection, RUN, find_system) if each.divergence]
    assert differing == (["q1"] if forged else [])


def test_what_a_former_version_ended_verifies_and_replays(former: Engine) -> None:
    with former.connect() as connection:
        assert not verified(connection).findings
        assert not [each for each in replay_run(connection, RUN, find_system) if each.divergence]
        assert [each.ended_by for each in read_questions(connection, RUN)] == ["failure: StepError", "", ""]
        assert read_ends(connection, RUN) == {"failure: StepError": 1}
