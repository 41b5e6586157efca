"""What a run asked for and what it spent, against a real PostgreSQL."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import Engine, update

from benchmarks.contenders.cotrail import submission
from cotrail.evaluation.experiments.costs import Cost, Work, totals
from cotrail.models.commands.forking import fork
from cotrail.models.commands.submission import open_experiment
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import expire_leases
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.runs import read_run
from cotrail.models.schema.tables import attempts
from cotrail.services.runs.scores import adopted_from, run_cost
from cotrail.systems.registry import find_system
from tests.integration.stepping import LEASE, MILLISECONDS, STEPS, begin, run_to_end, unsent
from tests.integration.test_forking import forked

pytestmark = pytest.mark.usefixtures("verified")

CostOf = Callable[[str], Cost]


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine, "w", LEASE, find_system)


@pytest.fixture
def cost_of(engine: Engine) -> CostOf:
    def cost_of(run: str) -> Cost:
        with engine.connect() as connection:
            return run_cost(connection, run)

    return cost_of


def origin_of(engine: Engine, run: str) -> str | None:
    with engine.connect() as connection:
        return adopted_from(read_run(connection, run))


def test_what_a_run_adopted_was_asked_for_and_not_spent(engine: Engine, ledger: Ledger, cost_of: CostOf) -> None:
    open_experiment(engine, "ours", {})
    for run in ("first", "second"):
        run_to_end(ledger, begin(engine, 1, id=run, cell=run, experiment="ours", reuse=True))
    first, second = cost_of("first"), cost_of("second")
    assert first.adopted == second.made == Work()
    assert first.asked == first.made == second.asked == second.adopted
    assert (first.made.steps, first.made.model_calls + first.made.searches) == (STEPS, STEPS)
    assert first.made.model_calls > 1 < first.made.searches
    assert first.made.seconds == pytest.approx(STEPS * MILLISECONDS / 1000)
    assert first.made.model_seconds == pytest.approx(first.made.model_calls * MILLISECONDS / 1000)
    assert origin_of(engine, "second") == "experiment ours"
    table = totals({None: [first, second]})
    assert table
    calls = {row.values["work"]: row.values["model_calls"] for row in table.rows}
    assert calls == {
        "asked for": 2 * first.made.model_calls,
        "adopted": first.made.model_calls,
        "made": first.made.model_calls,
    }


def test_a_fork_spent_only_what_it_computed(engine: Engine, ledger: Ledger, cost_of: CostOf) -> None:
    run_to_end(ledger, begin(engine, 1))
    usual = submission().id
    fork(engine, forked("forked"), None, find_system)
    assert cost_of("forked").adopted == cost_of(usual).made
    assert cost_of("forked").made == Work()
    assert cost_of("forked").lost == {}
    assert origin_of(engine, "forked") == f"run {usual}"


def test_executions_without_a_result_are_spent_too(engine: Engine, ledger: Ledger, cost_of: CostOf) -> None:
    messages = begin(engine, 1)
    Ledger(engine, "gone", 0.0, find_system).claim(messages)
    with engine.begin() as connection:
        expire_leases(connection)
    before = cost_of(submission().id)
    assert (before.lost, before.asked) == ({"expired": 1}, Work())
    run_to_end(ledger, unsent(engine))
    after = cost_of(submission().id)
    assert (after.lost, after.lost_seconds) == (before.lost, before.lost_seconds)
    assert after.made.steps == STEPS


def test_the_time_of_a_run_begins_with_its_first_execution_also_where_that_was_lost(
    engine: Engine, ledger: Ledger
) -> None:
    messages = begin(engine, 1)
    Ledger(engine, "dying", 0, find_system).claim(messages)
    with engine.begin() as connection:
        connection.execute(update(attempts).values(started_at=attempts.c.started_at - timedelta(seconds=120)))
    with engine.begin() as connection:
        expire_leases(connection)
    run_to_end(ledger, unsent(engine))
    with engine.connect() as connection:
        assert 120 <= read_progress(connection, submission().id).seconds < 240
