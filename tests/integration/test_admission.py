"""Admission on a real store: how many questions begin, and whose."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import Engine, select

from benchmarks.contenders.cotrail import submission
from cotrail.errors import CorpusChangedError
from cotrail.models.commands.control import cancel, pause, prioritize, resume
from cotrail.models.commands.submission import submit
from cotrail.models.execution.admission import LEAST_WINDOW, UnderWay, Waiting, admit, share
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import steps
from cotrail.systems.registry import find_system
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, ask, run_to_end

pytestmark = pytest.mark.usefixtures("verified")


def ask_in(engine: Engine, run: str, questions: int, priority: int = 0) -> None:
    submit(engine, replace(submission(), id=run, priority=priority), ask(questions), find_system)


def admitted(engine: Engine) -> list[Dispatch]:
    with engine.begin() as connection:
        return admit(connection)


def runs_of(query: Query, messages: list[Dispatch]) -> list[str]:
    found = {row["id"]: row["run_id"] for row in query(select(steps.c.id, steps.c.run_id))}
    return [found[message.step_id] for message in messages]


def test_a_large_run_begins_with_a_few_questions_and_goes_on_as_they_end(engine: Engine, query: Query) -> None:
    ask_in(engine, "large", 100)
    ledger = Ledger(engine, "w", LEASE, find_system)
    first = admitted(engine)
    assert len(first) == LEAST_WINDOW
    assert admitted(engine) == []
    run_to_end(ledger, first[:5])
    further = admitted(engine)
    assert len(further) == 5
    messages = [*first[5:], *further]
    while messages:
        run_to_end(ledger, messages)
        messages = admitted(engine)
    assert {row["state"] for row in query(select(steps.c.state))} == {"finished"}


def test_more_may_be_under_way_the_more_are_executed(engine: Engine) -> None:
    ask_in(engine, "large", 200)
    Ledger(engine, "w", LEASE, find_system).claim(admitted(engine))
    assert len(admitted(engine)) == 4 * LEAST_WINDOW


def test_a_run_that_comes_later_begins_at_once_and_in_turn_with_the_others(engine: Engine, query: Query) -> None:
    ask_in(engine, "early", 100)
    admitted(engine)
    ask_in(engine, "late", 100)
    assert set(runs_of(query, admitted(engine))) == {"late"}


def test_runs_that_begin_together_are_admitted_in_turn(engine: Engine, query: Query) -> None:
    ask_in(engine, "one", 100)
    ask_in(engine, "two", 3)
    order = runs_of(query, admitted(engine))
    assert order[:6] == ["one", "two"] * 3
    assert Counter(order) == {"one": LEAST_WINDOW, "two": 3}


def test_a_higher_priority_goes_first_once_workers_are_busy(engine: Engine, query: Query) -> None:
    ask_in(engine, "usual", 100)
    ask_in(engine, "urgent", 100, priority=5)
    ledger = Ledger(engine, "w", LEASE, find_system)
    ledger.claim(admitted(engine))
    assert set(runs_of(query, admitted(engine))) == {"urgent"}
    prioritize(engine, "usual", 6)
    assert set(runs_of(query, admitted(engine))) == {"usual"}


def test_nothing_of_a_paused_or_a_cancelled_run_is_admitted(engine: Engine) -> None:
    ask_in(engine, "paused", 3)
    ask_in(engine, "cancelled", 3)
    pause(engine, "paused")
    cancel(engine, "cancelled")
    assert admitted(engine) == []
    resume(engine, "paused", find_system)
    assert len(admitted(engine)) == 3


def test_blocked_questions_keep_no_others_from_beginning(engine: Engine) -> None:
    ask_in(engine, "large", 2 * LEAST_WINDOW + 1)
    ledger = Ledger(engine, "w", LEASE, find_system)
    for _ in range(2):
        for number, claim in enumerate(ledger.claim(admitted(engine))):
            assert claim is not None
            ledger.block(claim, CorpusChangedError("indexed again") if number % 2 else OSError("no such file"))
    assert len(admitted(engine)) == 1


@pytest.mark.parametrize("running", [0, 1, 7, 1000])
def test_nobody_waits_for_ever(running: int) -> None:
    waiting = [Waiting("a", 0), Waiting("b", 0)]
    assert share(waiting, UnderWay({}, running)).keys() == {"a", "b"}
    assert share([Waiting("low", 0), Waiting("high", 1)], UnderWay({"high": 10**6}, 0)) == {"low": LEAST_WINDOW}


@given(st.dictionaries(st.text("abc", min_size=1), st.integers(0, 200), min_size=1, max_size=6), st.integers(0, 500))
def test_runs_of_one_priority_come_to_the_same_number_of_steps_under_way(by_run: dict[str, int], running: int) -> None:
    waiting = [Waiting(run, 3) for run in sorted(by_run)]
    rooms = share(waiting, UnderWay(by_run, running))
    levels = {by_run[run] + room for run, room in rooms.items()}
    assert len(levels) <= 1
    assert all(by_run[run] >= level for level in levels for run in by_run if run not in rooms)


def test_waiting_steps_are_no_messages_yet(engine: Engine, query: Query) -> None:
    ask_in(engine, "large", 50)
    admitted(engine)
    waiting = query(select(steps.c.id).where(steps.c.state == StepState.WAITING, steps.c.sent_at.is_not(None)))
    assert waiting == []
