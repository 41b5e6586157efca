"""Epochs only ever rise, so that nothing that is done again, or comes late, touches what was claimed since."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select, text

from cotrail.audit.verification import verify
from cotrail.core.results import Failure
from cotrail.errors import CorpusChangedError, InputError, TransientStepError, UnavailableError
from cotrail.models.commands.control import resume
from cotrail.models.execution.leases import Claim
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import expire_leases
from cotrail.models.records.steps import Dispatch
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.tables import attempts, questions, steps
from cotrail.systems.registry import find_system
from tests.integration.conftest import Query, empty
from tests.integration.stepping import LEASE, begin, completed, run_to_end, unsent

pytestmark = pytest.mark.usefixtures("verified")

RUN = "costless"

Verb = Callable[[Ledger, Claim], object]

VERBS: dict[str, Verb] = {
    "defer": lambda ledger, claim: ledger.defer(claim, 0),
    "release": lambda ledger, claim: ledger.release([claim]),
    "retry": lambda ledger, claim: ledger.retry(claim, TransientStepError("not now"), 0),
    "hold": lambda ledger, claim: ledger.hold(claim, UnavailableError("away"), 0),
    "block": lambda ledger, claim: ledger.block(claim, CorpusChangedError("indexed again")),
    "commit": lambda ledger, claim: ledger.commit([completed(claim)]),
    "disclaim": lambda ledger, claim: ledger.disclaim([Dispatch(claim.step_id, claim.epoch - 1, "retrieve")]),
}
"""What may become of a claimed step."""


@pytest.fixture
def rising(engine: Engine) -> Iterator[None]:
    """The database refuses to count an epoch down."""
    refuse = """
        CREATE FUNCTION rising() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN RAISE EXCEPTION ''epoch % of step % is counted down'', OLD.epoch, OLD.id; END';
        CREATE TRIGGER rising BEFORE UPDATE ON steps FOR EACH ROW WHEN (NEW.epoch < OLD.epoch)
        EXECUTE FUNCTION rising();
    """
    with engine.begin() as connection:
        connection.execute(text(refuse))
    yield
    with engine.begin() as connection:
        connection.execute(text("DROP FUNCTION rising CASCADE"))


def claim(ledger: Ledger, message: Dispatch) -> Claim:
    [claimed] = ledger.claim([message])
    assert claimed is not None
    return claimed


def go_on(engine: Engine) -> list[Dispatch]:
    """Whatever was blocked goes on; the messages of steps that are ready."""
    with suppress(InputError):  # all questions may have ended
        resume(engine, RUN, find_system)
    return [message for kind in ("retrieve", "reason", "read") for message in unsent(engine, kind)]


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "commit"])
def test_what_is_done_again_as_its_answer_was_lost_undoes_no_later_claim(
    verb: str, engine: Engine, query: Query
) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    earlier = claim(ledger, begin(engine)[0])
    VERBS[verb](ledger, earlier)
    [message] = go_on(engine)
    later = claim(ledger, message)
    before = [query(select(table)) for table in (steps, attempts, questions)]
    VERBS[verb](ledger, earlier)
    assert [query(select(table)) for table in (steps, attempts, questions)] == before
    assert len(ledger.commit([completed(later)])[0]) == 1


def test_a_late_result_does_not_count_once_another_claimed_though_that_gave_the_step_back(engine: Engine) -> None:
    late, other = Ledger(engine, "late", 0, find_system), Ledger(engine, "other", LEASE, find_system)
    claimed = claim(late, begin(engine)[0])
    with engine.begin() as connection:
        expire_leases(connection)
    other.defer(claim(other, unsent(engine)[0]), 0)
    assert late.commit([completed(claimed)]) == [[]]
    assert run_to_end(other, unsent(engine)) > 0


def test_a_step_whose_last_claim_came_to_nothing_is_not_given_up(engine: Engine, query: Query) -> None:
    late, other = Ledger(engine, "late", 0, find_system), Ledger(engine, "other", LEASE, find_system)
    claimed = claim(late, begin(engine)[0])
    with engine.begin() as connection:
        expire_leases(connection)
    other.defer(claim(other, unsent(engine)[0]), 0)
    assert other.give_up([claimed.step_id], Failure(type="PoisonedStep", message="again and again")) == []
    assert query(select(steps.c.state, steps.c.epoch)) == [{"state": "ready", "epoch": 2}]


def test_who_lost_a_step_blocks_its_question_no_more(engine: Engine, query: Query) -> None:
    late, other = Ledger(engine, "late", 0, find_system), Ledger(engine, "other", LEASE, find_system)
    claimed = claim(late, begin(engine)[0])
    with engine.begin() as connection:
        expire_leases(connection)
    later = claim(other, unsent(engine)[0])
    late.block(claimed, CorpusChangedError("indexed again"))
    assert query(select(questions.c.status)) == [{"status": "open"}]
    run_to_end(other, other.commit([completed(later)])[0])


@pytest.mark.usefixtures("rising")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(st.tuples(st.sampled_from(["claim", "claim", "expire", *VERBS]), st.integers(0, 20))))
def test_whatever_is_done_with_claims_old_and_new_an_epoch_only_rises(
    engine: Engine, moves: list[tuple[str, int]]
) -> None:
    begin(engine, 2, id=RUN)
    ledgers = (
        Ledger(engine, "one", LEASE, find_system),
        Ledger(engine, "other", LEASE, find_system),
        Ledger(engine, "mute", 0, find_system),
    )
    claims: list[tuple[Ledger, Claim]] = []
    for move, number in moves:
        if move == "claim":
            ledger = ledgers[number % len(ledgers)]
            claims += [(ledger, each) for each in ledger.claim(go_on(engine)) if each is not None]
        elif move == "expire":
            with engine.begin() as connection:
                expire_leases(connection)
        elif claims:
            ledger, claimed = claims[number % len(claims)]
            VERBS[move](ledger, claimed)
    with engine.connect() as connection:
        assert [str(finding) for finding in verify(read_trail(connection, RUN)).findings] == []
    empty(engine)
