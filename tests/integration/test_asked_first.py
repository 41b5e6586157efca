"""A question that somebody asked goes ahead of what is queued: as it begins, in the queues, where models compute."""

from msgspec.structs import replace
from sqlalchemy import Engine, select

from benchmarks.contenders.cotrail import submission
from cotrail.models.commands.submission import submit, submit_asked
from cotrail.models.execution.admission import LEAST_WINDOW, UnderWay, Waiting, admit, share
from cotrail.models.execution.leases import next_in_turn
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import steps
from cotrail.systems.registry import find_system
from cotrail.tasks.routing import LEVELS, priority
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, ask, run_to_end


def ask_alone(engine: Engine) -> tuple[int, list[Dispatch]]:
    [question] = ask(1)
    return submit_asked(engine, replace(submission(), id="alone", asked=True), question, find_system)


def test_it_waits_for_no_admission_and_ends_by_the_same_steps(engine: Engine, query: Query) -> None:
    submit(engine, replace(submission(), id="large", priority=9), ask(100), find_system)
    ledger = Ledger(engine, "w", LEASE, find_system)
    with engine.begin() as connection:
        begun = admit(connection)
    assert len(begun) == LEAST_WINDOW
    row, messages = ask_alone(engine)
    assert messages
    assert all(message.asked for message in messages)
    run_to_end(ledger, messages)
    states = query(select(steps.c.state).where(steps.c.question_id == row))
    assert {each["state"] for each in states} == {"finished"}


def test_its_messages_have_the_first_level_alone() -> None:
    others = {priority(Dispatch(1, 0, "reason", sequence)) for sequence in range(20)}
    assert others == set(LEVELS[1:])
    assert {priority(Dispatch(1, 0, "reason", sequence, asked=True)) for sequence in range(20)} == {LEVELS[0]}


def test_once_it_is_tried_again_it_waits_for_no_window_and_no_priority() -> None:
    waiting = [Waiting("high", 5), Waiting("alone", 0, asked=True)]
    under_way = UnderWay({"high": 1000, "alone": LEAST_WINDOW}, 10)
    assert share(waiting, under_way) == {"alone": LEAST_WINDOW}
    assert share(waiting[1:], under_way) == {"alone": LEAST_WINDOW}


def test_it_waits_for_no_turn_of_a_model(engine: Engine) -> None:
    submit(engine, replace(submission(), id="large"), ask(30), find_system)
    with engine.begin() as connection:
        admitted = admit(connection)
    _, [asked] = ask_alone(engine)
    with engine.begin() as connection:
        first, second = next_in_turn(connection, asked.kind, [admitted[0].step_id], [submission().model_name], 2)
    assert (first.step_id, second.step_id) == (asked.step_id, admitted[0].step_id)
