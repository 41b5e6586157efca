"""What a run spent on its language models, from its record: every paid call once, with the prices that it pins."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from benchmarks.contenders.cotrail import submission
from cotrail.core.money import Spent
from cotrail.core.results import Generated, failure_of
from cotrail.errors import BlockedError, UnansweredError
from cotrail.models.commands.forking import fork
from cotrail.models.commands.retrying import retry
from cotrail.models.execution.leases import Claim, Leases
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.spending import read_spent
from cotrail.models.records.runs import PRICES
from cotrail.models.records.steps import Dispatch
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, begin, completed, executed, run_to_end, unsent
from tests.integration.test_forking import forked

pytestmark = pytest.mark.usefixtures("verified")

CHEAP = {"input": "1", "cached": "0.1", "cache_written": "2", "output": "10"}
LONG = {**CHEAP, "input": "2", "above": 1000}
PRICED = {PRICES: {"model": {"rates": [CHEAP, LONG], "source": "models.toml"}}}


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine, "w", LEASE, find_system)


def spent_of(engine: Engine, run: str = "") -> Spent:
    with engine.connect() as connection:
        return read_spent(connection, run or submission().id)


def wrote(claim: Claim, **counts: Any) -> Generated:
    result = executed(claim)
    assert isinstance(result, Generated)
    return replace(result, **counts)


def first_sentence(engine: Engine, ledger: Ledger, **changes: Any) -> Claim:
    """The claim of a question's first call of its model."""
    [search] = ledger.claim(begin(engine, 1, **changes))
    [following] = ledger.commit([completed(search)])
    [claim] = ledger.claim(following)
    assert claim
    return claim


def counted(engine: Engine, ledger: Ledger, claim: Claim, **counts: Any) -> list[Dispatch]:
    [following] = ledger.commit([completed(claim, wrote(claim, **counts))])
    return list(following)


def test_every_token_is_charged_by_the_rates_of_its_call(engine: Engine, ledger: Ledger) -> None:
    claim = first_sentence(engine, ledger, provenance=PRICED)
    counts = {"prompt_tokens": 1001, "cached_prompt_tokens": 1, "cache_written_tokens": 500, "generated_tokens": 30}
    counted(engine, ledger, claim, **counts, thought_tokens=20, estimated=True)
    spent = spent_of(engine)
    assert spent.dollars == Decimal("0.0023001")
    assert (spent.usage.calls, spent.usage.input_tokens, spent.usage.cached_tokens) == (1, 1001, 1)
    assert (spent.usage.cache_written_tokens, spent.usage.output_tokens) == (500, 30)
    assert (spent.usage.thought_tokens, spent.usage.estimated) == (20, 1)


def test_an_answer_that_failed_its_step_was_paid_and_is_counted_once(engine: Engine, ledger: Ledger) -> None:
    """Before the step is tried again, meanwhile, and after it has an answer."""
    claim = first_sentence(engine, ledger, provenance=PRICED)
    refused = wrote(claim, prompt_tokens=100, cached_prompt_tokens=0, generated_tokens=10)
    failure = failure_of(UnansweredError("nothing but thought", refused))
    ledger.commit([completed(claim, failure)])
    paid = Decimal("0.0002")
    assert spent_of(engine).dollars == paid
    retry(engine, submission().id, find_system, failed=True, blocked=False)
    assert spent_of(engine).dollars == paid
    [again] = ledger.claim(unsent(engine, "reason"))
    assert again
    counted(engine, ledger, again, prompt_tokens=1000, cached_prompt_tokens=1000, generated_tokens=0)
    assert spent_of(engine).dollars == paid + Decimal("0.0001")
    assert spent_of(engine).usage.calls == 2


def test_an_answer_that_blocked_its_question_was_paid(engine: Engine, ledger: Ledger) -> None:
    claim = first_sentence(engine, ledger, provenance=PRICED)
    written = wrote(claim, prompt_tokens=100, cached_prompt_tokens=0, generated_tokens=10)
    leases = Leases(engine, "w", LEASE)
    leases.block(claim, BlockedError("marks that nobody knows", written))
    assert (spent_of(engine).usage.calls, spent_of(engine).dollars) == (1, Decimal("0.0002"))
    retry(engine, submission().id, find_system, failed=False, blocked=True)
    [again] = ledger.claim(unsent(engine, "reason"))
    assert again
    leases.block(again, BlockedError("nothing was asked"))
    assert spent_of(engine).usage.calls == 1


def test_adopted_steps_cost_nothing(engine: Engine, ledger: Ledger) -> None:
    run_to_end(ledger, begin(engine, 1, provenance=PRICED))
    assert spent_of(engine).usage.calls > 1
    fork(engine, replace(forked("forked"), provenance=PRICED), None, find_system)
    assert spent_of(engine, "forked") == Spent()


@pytest.mark.parametrize(("provenance", "unpriced"), [({}, ()), ({PRICES: {"model": None}}, ("costless",))])
def test_without_a_price_there_is_no_money(
    engine: Engine, ledger: Ledger, provenance: Any, unpriced: tuple[str, ...]
) -> None:
    run_to_end(ledger, begin(engine, 1, provenance=provenance, model_name="costless"))
    spent = spent_of(engine)
    assert (spent.dollars, spent.unpriced) == (None, unpriced)
    assert spent.usage.calls
    with engine.connect() as connection:
        progress = read_progress(connection, submission().id)
    assert progress.spent == (spent if provenance else None)
