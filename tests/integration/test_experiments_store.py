"""Experiments in the store: opened once, read back, and one run a cell."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, func, select, update
from sqlalchemy.exc import IntegrityError

from benchmarks.contenders.cotrail import submission
from cotrail.core.questions import GoldParagraph, Question
from cotrail.errors import InputError, UnknownNameError
from cotrail.models.commands.submission import open_experiment, submit
from cotrail.models.queries.experiments import experiment_ids, read_experiment, resolve_experiment
from cotrail.models.schema.tables import demonstrations, experiments, paragraphs, questions, runs, steps
from cotrail.systems.registry import find_system
from tests.integration.conftest import Query
from tests.integration.stepping import ask

Enter = Callable[..., str]

PLAN = {"name": "ours", "counts": (2, 4), "model": {"name": "m", "context": 8000, "more": 1}, "limit": 1.0}


@pytest.fixture
def enter(engine: Engine) -> Enter:
    """Submits a run as a cell of the experiment; returns the id of the cell's run."""
    open_experiment(engine, "ours", PLAN)

    def enter(run: str, cell: str, **changes: Any) -> str:
        given = replace(submission(), id=run, experiment="ours", cell=cell, **changes)
        return submit(engine, given, ask(2), find_system)

    return enter


def test_an_experiment_is_read_back_with_its_runs_in_order(engine: Engine, enter: Enter) -> None:
    for cell in ("b", "a", "c"):
        enter(f"run-{cell}", cell)
    with engine.begin() as connection:
        record = read_experiment(connection, "ours")
    assert (record.id, list(record.runs.items())) == ("ours", [("b", "run-b"), ("a", "run-a"), ("c", "run-c")])
    assert record.plan == {**PLAN, "counts": [2, 4]}
    assert record.created_at.tzinfo is not None


def test_an_experiment_is_gone_on_with_under_the_same_plan(engine: Engine, enter: Enter) -> None:
    enter("run", "a")
    open_experiment(engine, "ours", dict(reversed(PLAN.items())))
    with engine.begin() as connection:
        assert read_experiment(connection, "ours").runs == {"a": "run"}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"counts": (2,)}, "counts differ"),
        ({"model": {"name": "m", "context": 6000, "more": 1}}, "model.context differ"),
        ({"model": {"name": "m", "context": 8000}}, "model.more differ"),
        ({"model": None, "limit": 2, "seed": 1, "name": "x"}, "limit, model, name, ... differ"),
    ],
)
def test_another_plan_under_the_same_name_is_refused_with_what_differs(
    engine: Engine, enter: Enter, changes: dict[str, Any], named: str
) -> None:
    with pytest.raises(InputError, match=f"'ours' was begun with another file: {named}.*another name"):
        open_experiment(engine, "ours", PLAN | changes)
    with engine.begin() as connection:
        assert read_experiment(connection, "ours").plan["counts"] == [2, 4]


def test_an_experiment_that_pinned_whole_digests_is_held_to_them(engine: Engine) -> None:
    pinned, alike = (f"m@{'a' * 12}{digit * 52}" for digit in "bc")
    assert open_experiment(engine, "now", PLAN | {"models": {"m": pinned}})["models"] == {"m": pinned}
    with pytest.raises(InputError, match=r"models\.m differ"):
        open_experiment(engine, "now", PLAN | {"models": {"m": alike}})


def test_an_experiment_is_found_by_its_name_or_as_the_latest(engine: Engine, query: Query) -> None:
    for number, name in enumerate(("first", "last", "second")):
        open_experiment(engine, name, {})
        later = func.now() + func.make_interval(0, 0, 0, number % 2)
        query(update(experiments).where(experiments.c.id == name).values(created_at=later).returning(experiments.c.id))
    with engine.begin() as connection:
        assert experiment_ids(connection)[0] == "last"
        assert [resolve_experiment(connection, given) for given in ("first", "latest")] == ["first", "last"]


@pytest.mark.parametrize("look_up", [resolve_experiment, read_experiment])
def test_an_unknown_experiment_is_an_error_that_says_what_there_is(engine: Engine, look_up: Callable[..., Any]) -> None:
    with engine.begin() as connection, pytest.raises(UnknownNameError, match="there are: none yet"):
        look_up(connection, "latest")
    open_experiment(engine, "ours", {})
    with (
        engine.begin() as connection,
        pytest.raises(UnknownNameError, match=r"no experiment 'our' \(did you mean ours\?\); there are: ours"),
    ):
        look_up(connection, "our")


def test_a_cell_that_has_a_run_gets_no_second(enter: Enter, query: Query) -> None:
    assert (enter("first", "a"), enter("second", "a"), enter("third", "b")) == ("first", "first", "third")
    assert query(select(runs.c.id).order_by(runs.c.id)) == [{"id": "first"}, {"id": "third"}]
    assert query(select(func.count().label("asked")).select_from(questions)) == [{"asked": 4}]


def test_a_cell_submitted_at_once_by_many_has_one_run_and_all_are_told_which(
    engine: Engine, enter: Enter, query: Query
) -> None:
    cells, submitters = 10, 4
    together = threading.Barrier(submitters)

    def submit_all(submitter: int) -> list[str]:
        together.wait()
        return [enter(f"{cell} by {submitter}", f"cell {cell}", reuse=True) for cell in range(cells)]

    with ThreadPoolExecutor(submitters) as threads:
        told = list(threads.map(submit_all, range(submitters)))
    assert all(each == told[0] for each in told)
    assert query(select(func.count(runs.c.cell.distinct()).label("cells"))) == [{"cells": cells}]
    assert query(select(func.count().label("first")).select_from(steps)) == [{"first": 2 * cells}]


def test_runs_without_an_experiment_are_never_taken_for_one_another(engine: Engine, query: Query) -> None:
    assert [submit(engine, replace(submission(), id=run), ask(1), find_system) for run in ("one", "two")] == [
        "one",
        "two",
    ]
    with pytest.raises(IntegrityError, match="runs_pkey"):
        submit(engine, replace(submission(), id="one"), ask(1), find_system)
    assert len(query(select(runs))) == 2


def test_a_refused_submission_leaves_nothing_of_its_cell(engine: Engine, enter: Enter, query: Query) -> None:
    twice = [Question(id="same", text="Who?"), Question(id="same", text="Where?")]
    with pytest.raises(IntegrityError, match="questions_run_id_key_key"):
        submit(engine, replace(submission(), id="bad", experiment="ours", cell="a"), twice, find_system)
    assert query(select(runs)) == query(select(demonstrations)) == []
    assert enter("good", "a") == "good"


def test_pinned_passages_are_stored_once_whatever_the_order(engine: Engine, query: Query) -> None:
    def pinning(number: int) -> Question:
        return Question(id=f"q{number}", text="Who?", pinned=GoldParagraph(title=f"{number % 700}", text="So."))

    together = threading.Barrier(2)

    def enter(run: str, order: int) -> str:
        together.wait()
        return submit(
            engine, replace(submission(), id=run), [pinning(number) for number in range(1400)[::order]], find_system
        )

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(enter, ("there", "back"), (1, -1))) == ["there", "back"]
    assert query(select(func.count().label("passages")).select_from(paragraphs)) == [{"passages": 700}]
