"""A stored run replayed: what agrees, and how a departure of the code or of the record shows."""

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, select, update

from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.questions import Question
from cotrail.core.system import Answer, System
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.repeated_steps import Replayed, replay_run
from cotrail.models.records.runs import FindSystem
from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import paragraph_sets, questions, steps
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import find_spec
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, STEPS, begin, completed, run_to_end

RUN = "costless"


def replayed(engine: Engine, systems: FindSystem = find_system) -> list[Replayed]:
    with engine.connect() as connection:
        return list(replay_run(connection, RUN, systems))


def changed(system: Any) -> FindSystem:
    return partial(find_spec, tuple(replace(spec, open=system) if spec.name == "ircot" else spec for spec in SYSTEMS))


@pytest.fixture
def finished(engine: Engine) -> Engine:
    """The store with a run of three questions, all finished."""
    run_to_end(Ledger(engine, "w", LEASE, find_system), begin(engine, 3))
    return engine


def test_a_finished_run_replays_as_recorded_and_nothing_is_changed(finished: Engine, query: Query) -> None:
    before = query(select(steps).order_by(steps.c.id)), query(select(questions).order_by(questions.c.id))
    found = replayed(finished)
    assert [(each.key, each.status, each.steps, each.divergence) for each in found] == [
        (f"q{number}", "finished", STEPS, "") for number in range(3)
    ]
    assert (query(select(steps).order_by(steps.c.id)), query(select(questions).order_by(questions.c.id))) == before


def test_a_run_under_way_agrees_as_far_as_it_is(engine: Engine) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    [claim] = ledger.claim(begin(engine))
    ledger.commit([completed(claim)])
    assert [(each.status, each.steps, each.divergence) for each in replayed(engine)] == [("open", 2, "")]


def test_changed_code_is_told_with_the_step_where_it_departs(finished: Engine) -> None:
    def other(question: Question, shots: Any, settings: Any) -> System:
        yield Retrieve(query="something else", count=3)
        return Answer(text="")

    found = replayed(finished, changed(other))
    assert all("step 0 no longer agrees with the record" in each.divergence for each in found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": "Elsewhere"}, 'its answer is recorded as "Elsewhere", and would be "Grayle" now'),
        ({"sentences": ["It was so."]}, 'its sentences is recorded as ["It was so."]'),
        ({"status": "failed"}, "it is recorded as failed, and would be finished now"),
    ],
)
def test_a_changed_question_is_told(finished: Engine, change: dict[str, Any], said: str) -> None:
    with finished.begin() as connection:
        amending(connection)
        connection.execute(update(questions).where(questions.c.key == "q1").values(change))
    assert [said in each.divergence for each in replayed(finished)] == [False, True, False]


def test_a_changed_paragraph_set_is_told(finished: Engine) -> None:
    with finished.begin() as connection:
        amending(connection)
        first = select(steps.c.id).where(steps.c.question_id == 2, steps.c.sequence == 0).scalar_subquery()
        gone = paragraph_sets.delete().where(paragraph_sets.c.step_id == first, paragraph_sets.c.rank == 1)
        connection.execute(gone)
    assert [bool(each.divergence) for each in replayed(finished)] == [False, True, False]
