"""Budgets against a real PostgreSQL: where they end questions, whoever is killed meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, func, select

from benchmarks.contenders.cotrail import submission
from cotrail.core.budgets import Consumed, left
from cotrail.core.results import Generated
from cotrail.models.commands.exhausting import end_unbegun
from cotrail.models.commands.forking import fork
from cotrail.models.commands.submission import submit
from cotrail.models.execution.admission import admit
from cotrail.models.execution.claims import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import expire_leases
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.replaying import replay_run
from cotrail.models.records.dispatch import Dispatch
from cotrail.models.records.runs import BUDGETS, PRICES
from cotrail.models.schema.tables import questions, steps
from cotrail.systems.registry import find_system
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, STEPS, ask, begin, close_runs, completed, executed, run_to_end, unsent
from tests.integration.test_forking import forked

pytestmark = pytest.mark.usefixtures("verified")

RUN = submission().id
RATES = {"input": "1", "cached": "1", "cache_written": "1", "output": "10"}
PRICED = {PRICES: {"model": {"rates": [RATES], "source": "models.toml"}}}
CALL = {"prompt_tokens": 100, "cached_prompt_tokens": 0, "generated_tokens": 10}
"""The tokens of a call, which cost 0.0002 dollars."""


def fresh(engine: Engine) -> Ledger:
    """A worker that has just been started: it knows nothing of what another one did."""
    return Ledger(engine, "w", LEASE, find_system)


def carried_out(claim: Claim | None) -> Completion:
    assert claim is not None
    outcome = executed(claim)
    return completed(claim, replace(outcome, **CALL) if isinstance(outcome, Generated) else outcome)


def step(ledger: Ledger, messages: list[Dispatch]) -> list[Dispatch]:
    """Carries out these steps, one after another; returns the messages that follow."""
    following: list[Dispatch] = []
    for message in messages:
        [claim] = ledger.claim([message])
        following += ledger.commit([carried_out(claim)])[0]
    return following


def finish(engine: Engine, messages: list[Dispatch], *, restart: bool = False) -> None:
    ledger = fresh(engine)
    while messages:
        messages = step(fresh(engine) if restart else ledger, messages)


def limited(**budgets: Any) -> dict[str, Any]:
    return {"provenance": {**PRICED, BUDGETS: budgets}}


def ends(query: Query) -> list[tuple[str, str, str | None]]:
    """The status, the end, and whether there is an answer, of each question."""
    rows = query(select(questions).order_by(questions.c.position))
    return [(row["status"], row["ended_by"], row["answer"]) for row in rows]


def kinds(query: Query) -> list[str]:
    return [row["kind"] for row in query(select(steps.c.kind).order_by(steps.c.question_id, steps.c.sequence))]


def diverging(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return [each.divergence for each in replay_run(connection, RUN, find_system) if each.divergence]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    ("budget", "limit", "before"),
    [
        ({"steps": 3}, "steps", 3),
        ({"tokens": 220}, "tokens", 4),
        ({"seconds": 0.005}, "seconds", 2),
        ({"money": 0.0004}, "money", 4),
    ],
)
def test_a_question_s_budget_ends_it_by_its_reader(
    engine: Engine, query: Query, budget: Any, limit: str, before: int, *, restart: bool
) -> None:
    """With one worker all the time, and with one that is killed and started anew before each step."""
    usual = ["retrieve", "reason", "retrieve", "reason", "retrieve", "reason"]
    finish(engine, begin(engine, **limited(question=budget)), restart=restart)
    assert kinds(query) == [*usual[:before], "read"]
    assert ends(query) == [("finished", f"limit: {limit}", "Grayle")]
    assert query(select(questions.c.halted)) == [{"halted": {"after": before, "limit": limit}}]
    assert diverging(engine) == []
    assert close_runs(engine) == [RUN]


def test_a_budget_that_is_not_reached_changes_nothing(engine: Engine, query: Query) -> None:
    finish(engine, begin(engine, **limited(question={"steps": STEPS, "tokens": 10**6}, run={"money": 5})))
    assert ends(query) == [("finished", "answer", "Grayle")]
    assert len(kinds(query)) == STEPS


def test_a_run_s_budget_ends_what_is_under_way_and_begins_nothing_more(engine: Engine, query: Query) -> None:
    submit(engine, replace(submission(), **limited(run={"steps": 5})), ask(40), find_system)
    with engine.begin() as connection:
        messages = admit(connection)
    begun = len(messages)
    assert 0 < begun < 40
    finish(engine, messages)
    assert end_unbegun(engine) == []
    with engine.begin() as connection:
        assert admit(connection) == []
    finished, unbegun = ends(query)[:begun], ends(query)[begun:]
    assert set(finished) == {("finished", "limit: run steps", "Grayle")}
    assert set(unbegun) == {("cancelled", "limit: run steps", None)}
    # The overshoot is what was under way when the limit was reached, and a reader for each.
    done = [kind for kind in kinds(query) if kind != "retrieve"]
    assert done.count("read") == begun
    assert diverging(engine) == []
    with engine.connect() as connection:
        progress = read_progress(connection, RUN)
    assert progress.ends == {"limit: run steps": 40}
    assert close_runs(engine) == [RUN]


def test_what_a_run_consumed_is_counted_once_whoever_repeats_it(engine: Engine) -> None:
    """A result that comes twice counts once; what is left is told."""
    messages = begin(engine, **limited(run={"money": 0.001, "tokens": 500}))
    ledger = fresh(engine)
    messages = step(ledger, messages)
    [claim] = ledger.claim(messages)
    done = carried_out(claim)
    ledger.commit([done])
    fresh(engine).commit([done])
    with engine.connect() as connection:
        progress = read_progress(connection, RUN)
    assert progress.consumed == Consumed(steps=2, tokens=110, seconds=Decimal("0.005"), money=Decimal("0.0002"))
    assert left(progress.budgets.run, progress.consumed) == "390 of 500 tokens, $0.00080 of $0.0010"


def test_questions_of_runs_without_a_budget_are_left_alone(engine: Engine, query: Query) -> None:
    run_to_end(fresh(engine), begin(engine, 2))
    assert end_unbegun(engine) == []
    assert [end for _, end, _ in ends(query)] == ["answer", "answer"]


def test_what_many_workers_add_at_once_is_the_sum_of_their_steps(engine: Engine, query: Query) -> None:
    messages = begin(engine, 24, **limited(run={"tokens": 10**9}))
    workers = 4
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(finish, engine, messages[n::workers]) for n in range(workers)]:
            done.result()
    tokens = func.sum(steps.c.prompt_tokens + steps.c.generated_tokens)
    sums = select(func.count().label("steps"), tokens.label("tokens"))
    [recorded] = query(sums)
    with engine.connect() as connection:
        consumed = read_progress(connection, RUN).consumed
    assert {"steps": consumed.steps, "tokens": consumed.tokens} == recorded
    assert consumed.seconds == recorded["steps"] * Decimal("0.0025")


def test_a_worker_that_dies_within_a_step_changes_nothing_of_where_a_budget_ends(engine: Engine, query: Query) -> None:
    messages = begin(engine, **limited(question={"tokens": 220}))
    while messages:
        Ledger(engine, "gone", 0.0, find_system).claim(messages)
        with engine.begin() as connection:
            expire_leases(connection)
        messages = step(fresh(engine), unsent(engine, messages[0].kind))
    assert ends(query) == [("finished", "limit: tokens", "Grayle")]
    assert kinds(query) == ["retrieve", "reason", "retrieve", "reason", "read"]
    assert diverging(engine) == []


def test_a_fork_of_a_question_that_a_budget_ended_takes_over_its_steps_and_its_budget(
    engine: Engine, query: Query
) -> None:
    """Up to where the budget ended the origin; and ends in the same place itself."""
    finish(engine, begin(engine, **limited(question={"steps": 4})))
    fork(engine, replace(forked("forked"), **limited(question={"steps": 4})), None, find_system)
    messages = [each for kind in ("retrieve", "reason", "read") for each in unsent(engine, kind)]
    finish(engine, messages)
    assert ends(query) == [("finished", "limit: steps", "Grayle")] * 2
