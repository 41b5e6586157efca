"""Budgets against a real PostgreSQL: where they end questions, whoever is killed meanwhile."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, func, select, update

from benchmarks.contenders.cotrail import submission
from cotrail.cli.terminal.run_text import stuck_line
from cotrail.core.budgets import Budgets, Consumed, left
from cotrail.core.results import Failure, Generated
from cotrail.errors import CorpusChangedError, InputError, QuotaExceededError
from cotrail.models.commands.control import pause, resume
from cotrail.models.commands.forking import fork
from cotrail.models.commands.retrying import end_unbegun, raise_budget, retry
from cotrail.models.commands.submission import submit
from cotrail.models.execution.admission import admit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.execution.recovery import expire_leases
from cotrail.models.queries.progress import read_progress
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.records.runs import BUDGETS, PRICES
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.service_tables import projects
from cotrail.models.schema.tables import questions, steps
from cotrail.services.results.runs import describe_run
from cotrail.systems.registry import find_system
from tests.integration.conftest import Cotrail, Query
from tests.integration.stepping import (
    LEASE,
    STEPS,
    ask,
    begin,
    close_runs,
    completed,
    end_all_unbegun,
    executed,
    run_to_end,
    unsent,
)
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
    end_all_unbegun(engine)
    with engine.begin() as connection:
        assert admit(connection) == []
    with pytest.raises(InputError, match="the run's budget of steps is used up; raise it"):
        retry(engine, RUN, find_system, failed=True, blocked=False)
    finished, unbegun = ends(query)[:begun], ends(query)[begun:]
    assert set(finished) == {("finished", "limit: run steps", "Grayle")}
    assert set(unbegun) == {("cancelled", "limit: run steps", None)}
    # The overshoot is what was under way when the limit was reached, and a reader for each.
    done = [kind for kind in kinds(query) if kind != "retrieve"]
    assert done.count("read") == begun
    assert diverging(engine) == []
    with engine.connect() as connection:
        progress, details = read_progress(connection, RUN), describe_run(connection, RUN)
    assert progress.ends == {"limit: run steps": 40}
    assert stuck_line(details) == (
        f"{RUN} used up its budget, {40 - begun} questions never began; "
        f"to go on: cotrail budget {RUN} --run-budget steps=N"
    )
    person, rule = replace(details, ends={}), replace(details, ends={"until: width(answer_f1) < 0.1": 40 - begun})
    assert stuck_line(person) == f"{RUN} was cancelled: {40 - begun} questions never asked"
    assert stuck_line(rule) == f"{RUN} was stopped by width(answer_f1) < 0.1: {40 - begun} questions never asked"
    assert close_runs(engine) == [RUN]


@pytest.mark.parametrize("budgets", [{}, {"question": {"tokens": 400}}])
def test_a_run_exceeds_its_budget_by_the_steps_under_way_at_most(engine: Engine, query: Query, budgets: Any) -> None:
    """Three workers take what was admitted, as large as a window is, and maintenance admits after each step."""
    limit = 2000
    submit(engine, replace(submission(), **limited(run={"tokens": limit}, **budgets)), ask(40), find_system)
    workers, waiting, most = [fresh(engine) for _ in range(3)], list[Dispatch](), 0
    while True:
        ending = end_unbegun(engine)
        with engine.begin() as connection:
            waiting += admit(connection, ending)
        if not waiting:
            break
        most = max(most, len(waiting))
        taken, waiting = waiting[:3], waiting[3:]
        claims = [worker.claim([message])[0] for worker, message in zip(workers, taken, strict=False)]
        for worker, claim in zip(workers, claims, strict=False):
            waiting += worker.commit([carried_out(claim)])[0]
    with engine.connect() as connection:
        consumed = read_progress(connection, RUN).consumed
    assert limit <= consumed.tokens <= limit + 2 * 110 * most, "a sentence and a reader's step of each"
    assert 1 < most <= limit / 330 + 1
    begun = [status for status, _, answer in ends(query) if answer]
    assert len(begun) >= limit // 400


def test_what_is_asked_for_at_once_begins_whole(engine: Engine, query: Query) -> None:
    """Of a question under way no step waits for its own end."""
    drawn = {"system": "self-consistency", "settings": {"chains": 5, "temperature": 0.7}}
    submit(engine, replace(submission(), **limited(run={"tokens": 10**6}), **drawn), ask(4), find_system)
    with engine.begin() as connection:
        assert len(admit(connection)) == 5
        assert admit(connection) == []
    [first, *_] = query(select(steps.c.question_id).where(steps.c.state == "ready").distinct())
    assert first["question_id"] == min(row["question_id"] for row in query(select(steps.c.question_id)))


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


@pytest.mark.parametrize("restart", [False, True])
def test_of_what_is_asked_for_at_once_a_budget_of_steps_begins_as_many(
    engine: Engine, query: Query, *, restart: bool
) -> None:
    """Ten chains wouldn't fit into a budget of five steps; the samples that came vote."""
    values = {"of": "direct@1", "samples": 10, "temperature": 0.7, "settings": {}}
    begin(engine, system="vote", system_version=1, settings=values, **limited(question={"steps": 5}))
    finish(engine, unsent(engine, "read"), restart=restart)
    assert kinds(query) == ["read"] * 5
    assert ends(query) == [("finished", "limit: steps", "Grayle")]
    assert query(select(questions.c.halted)) == [{"halted": {"after": 5, "limit": "steps"}}]
    assert diverging(engine) == []


def gone_on(engine: Engine, **limits: Any) -> int:
    """Raises the run's budgets and finishes what goes on by that."""
    raised = raise_budget(engine, RUN, msgspec.convert(limits, Budgets), find_system)
    messages = [each for kind in ("retrieve", "reason", "read") for each in unsent(engine, kind)]
    finish(engine, messages)
    return raised.questions


@pytest.mark.parametrize("restart", [False, True])
def test_a_question_that_its_budget_ended_goes_on_with_a_larger_one_as_if_it_never_had(
    engine: Engine, query: Query, *, restart: bool
) -> None:
    """Its first answer stays in the record, and its system isn't told of it."""
    finish(engine, begin(engine, **limited(question={"steps": 2})), restart=restart)
    assert close_runs(engine) == [RUN]
    assert gone_on(engine, question={"steps": 5}) == 1
    assert kinds(query) == ["retrieve", "reason", "read", "retrieve", "reason", "read"]
    assert ends(query) == [("finished", "limit: steps", "Grayle")]
    assert diverging(engine) == []
    assert gone_on(engine, question={"steps": 5}) == 0
    assert gone_on(engine, question={"steps": 100}) == 1
    assert ends(query) == [("finished", "answer", "Grayle")]
    assert len(kinds(query)) == STEPS + 2
    [row] = query(select(questions.c.halted))
    assert [(each["after"], each["until"], each["limit"]) for each in row["halted"]["raised"]] == [
        (2, 3, "steps"),
        (5, 6, "steps"),
    ]
    assert [each["budgets"]["question"]["steps"] for each in row["halted"]["raised"]] == [5, 100]
    assert diverging(engine) == []
    assert close_runs(engine) == [RUN]


def test_a_run_that_its_budget_ended_goes_on_with_a_larger_one(engine: Engine, query: Query) -> None:
    """Those under way from where they were, and those that hadn't begun from their beginning."""
    submit(engine, replace(submission(), **limited(run={"steps": 5})), ask(40), find_system)
    with engine.begin() as connection:
        messages = admit(connection)
    finish(engine, messages)
    end_all_unbegun(engine)
    assert close_runs(engine) == [RUN]
    assert gone_on(engine, run={"steps": 10_000}) == 40
    assert end_unbegun(engine) == []
    assert set(ends(query)) == {("finished", "answer", "Grayle")}
    assert diverging(engine) == []
    assert close_runs(engine) == [RUN]
    with engine.connect() as connection:
        progress = read_progress(connection, RUN)
    assert progress.budgets.run.steps == 10_000


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({}, "no limit is given"),
        ({"question": {"tokens": 9}}, "no question budget of tokens"),
        ({"question": {"steps": 2}}, "is 2, and only a larger one"),
        ({"question": {"steps": 1}}, "is 2, and only a larger one"),
    ],
)
def test_only_larger_limits_that_a_run_has_are_taken(engine: Engine, query: Query, limits: Any, said: str) -> None:
    finish(engine, begin(engine, **limited(question={"steps": 2})))
    with pytest.raises(InputError, match=said):
        gone_on(engine, **limits)
    assert ends(query) == [("finished", "limit: steps", "Grayle")]


@pytest.mark.parametrize("limits", [{"run": {"steps": 3}}, {"question": {"steps": 9}}])
def test_a_run_that_has_taken_a_larger_budget_already_keeps_its_answers(
    engine: Engine, query: Query, limits: Any
) -> None:
    """Its questions would only be read once more: also where another limit is raised than the one used up."""
    finish(engine, begin(engine, **limited(run={"steps": 2}, question={"steps": 8})))
    assert kinds(query) == ["retrieve", "reason", "read"]
    within = limits.get("run", {"steps": 2})["steps"]
    said = rf"has taken 3 steps, so that no question can go on within {within} steps; .*, with N above 3$"
    with pytest.raises(InputError, match=said):
        gone_on(engine, **limits)
    assert ends(query) == [("finished", "limit: run steps", "Grayle")]
    with engine.connect() as connection:
        assert read_progress(connection, RUN).budgets.run.steps == 2


def test_a_question_that_has_taken_its_larger_budget_already_keeps_its_answer(
    engine: Engine, query: Query, cotrail: Cotrail
) -> None:
    """Its reader's step took the place of the third."""
    finish(engine, begin(engine, **limited(question={"steps": 2})))
    said = cotrail("budget", RUN, "--question-budget", "steps=3").stdout
    assert said == f"{RUN}: has this budget from now on. None of its ended questions goes on: it has room for none.\n"
    assert kinds(query) == ["retrieve", "reason", "read"]
    assert cotrail("budget", RUN, "--question-budget", "steps=4").stdout.startswith(f"{RUN}: 1 question goes on.")


@pytest.mark.parametrize("budgets", [{"run": {"steps": 60}}, {"run": {"steps": 60}, "question": {"steps": 9}}])
def test_questions_that_have_begun_are_admitted_before_those_that_never_did(
    engine: Engine, query: Query, budgets: Any
) -> None:
    """Those that go on with a larger budget, and one that is retried, before 100 that hadn't begun."""
    submit(engine, replace(submission(), **limited(**budgets)), ask(120), find_system)
    ledger = fresh(engine)
    with engine.begin() as connection:
        messages = admit(connection)
    [failing] = ledger.claim(messages[:1])
    ledger.commit([completed(failing, Failure(type="IndexBroken", message="no"))])
    messages = messages[1:]
    while True:
        finish(engine, messages)
        ending = end_unbegun(engine)
        with engine.begin() as connection:
            messages = admit(connection, ending)
        if not messages:
            break
    begun = {row["question_id"] for row in query(select(steps.c.question_id).where(steps.c.state != "cancelled"))}
    assert 1 < len(begun) < 60
    raise_budget(engine, RUN, msgspec.convert({"run": {"steps": 10_000}}, Budgets), find_system)
    retry(engine, RUN, find_system, failed=True, blocked=False)
    waiting = {row["question_id"] for row in query(select(steps.c.question_id).where(steps.c.state == "waiting"))}
    going_on, admitted = begun & waiting, set[int]()
    while len(admitted) < len(going_on):
        with engine.begin() as connection:
            messages = admit(connection)
        owners = {row["id"]: row["question_id"] for row in query(select(steps.c.id, steps.c.question_id))}
        admitted |= {owners[each.step_id] for each in messages}
        finish(engine, messages)
    assert len(going_on) > 1
    assert going_on <= admitted


def block(ledger: Ledger, messages: list[Dispatch]) -> None:
    for claim in ledger.claim(messages):
        assert claim is not None
        ledger.block(claim, CorpusChangedError("indexed again"))


@pytest.mark.parametrize("again", [resume, partial(retry, failed=False, blocked=True)], ids=["resume", "retry"])
def test_blocked_questions_of_a_run_without_a_budget_left_stay_blocked(
    engine: Engine, query: Query, again: Callable[..., object]
) -> None:
    """They have begun, and would be ended by a budget that somebody may raise."""
    first, blocked, *_ = begin(engine, 3, **limited(run={"steps": 2}))
    block(fresh(engine), [blocked])
    finish(engine, [first])
    with pytest.raises(InputError, match=r"budget of steps is used up; raise it .*, then (resume|retry)"):
        again(engine, RUN, find_system)
    end_all_unbegun(engine)
    assert [status for status, *_ in ends(query)] == ["finished", "blocked", "open"]
    assert gone_on(engine, run={"steps": 1000}) == 1
    again(engine, RUN, find_system)
    finish(engine, unsent(engine))
    assert [status for status, *_ in ends(query)][1] == "finished"


def test_a_paused_run_without_a_budget_left_goes_on_with_what_is_under_way(engine: Engine, query: Query) -> None:
    first, blocked = begin(engine, 2, **limited(run={"steps": 1}))
    ledger = fresh(engine)
    block(ledger, [blocked])
    following = step(ledger, [first])
    pause(engine, RUN)
    assert ledger.claim(following) == [None]
    resume(engine, RUN, find_system)
    finish(engine, unsent(engine, "read"))
    assert [status for status, *_ in ends(query)] == ["finished", "blocked"]


def test_what_has_begun_and_waits_is_not_ended_as_if_it_never_had(engine: Engine, query: Query) -> None:
    """Its first step is tried again as another question takes what is left of the budget."""
    first, blocked = begin(engine, 2, **limited(run={"steps": 2}))
    block(fresh(engine), [blocked])
    resume(engine, RUN, find_system)
    finish(engine, [first])
    end_all_unbegun(engine)
    assert [status for status, *_ in ends(query)] == ["finished", "open"]
    finish(engine, unsent(engine))
    assert ends(query)[1] == ("finished", "limit: run steps", "Grayle")


def test_a_larger_budget_is_within_the_money_of_the_project(engine: Engine, query: Query) -> None:
    finish(engine, begin(engine, **limited(run={"money": 0.0004})))
    assert close_runs(engine) == [RUN]
    with engine.begin() as connection:
        connection.execute(update(projects).values(money=1))
    with pytest.raises(QuotaExceededError, match=r"would spend up to \$5"):
        gone_on(engine, run={"money": 5})
    assert ends(query) == [("finished", "limit: run money", "Grayle")]
    assert gone_on(engine, run={"money": 0.9}) == 1
    with engine.begin() as connection:
        connection.execute(update(projects).values(money=None))
    assert ends(query) == [("finished", "answer", "Grayle")]
