"""`kill -9` of any worker while chains are sampled and weighed: the run finishes with the steps and the answers that an
undisturbed run has, each step once. The models are scripted, the searches real.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.conftest import Eventually
from tests.faults.scripts import MODELS, RUN, sample, scripts
from tests.faults.stacked import (
    SAMPLE,
    Cotrail,
    count,
    is_as_undisturbed,
    kill_in_mid_run,
    open_questions,
    steps_of,
)
from tests.homes import asked_often, home_of

ROUNDS = 2
"""How often the sample's questions are asked."""

Undisturbed = tuple[list[Any], list[Any]]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home with all that the run needs but its corpus."""
    files = {"models.toml": MODELS, "run.toml": RUN, "questions.jsonl": asked_often(sample(), ROUNDS)}
    with home_of(scripts() | files) as made:
        yield made


@pytest.fixture(scope="module")
def submit(cotrail: Cotrail, home: Path) -> Callable[[], str]:
    """Submits the run; returns its id."""
    demonstrations = str(SAMPLE / "demonstrations.txt")

    def submit() -> str:
        output = cotrail("submit", f"{home}/run.toml", "--demonstrations", demonstrations, "--json")
        return str(json.loads(output.splitlines()[-1])["run"])

    return submit


@pytest.fixture(scope="module")
def undisturbed(engine: Engine, submit: Callable[[], str], eventually: Eventually) -> Undisturbed:
    """The steps of a run that nothing happened to, and its answers with how they were weighed."""
    run = submit()
    eventually(lambda: open_questions(engine, run) == 0, "the undisturbed run is finished", 120)
    return steps_of(engine, run), answers_of(engine, run)


def answers_of(engine: Engine, run: str) -> list[Any]:
    query = "SELECT key, status, answer, sentences, collected, weighing FROM questions WHERE run_id = :run ORDER BY key"
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(query), {"run": run})]


def test_the_evidence_decides_against_the_chains_that_go_wrong(undisturbed: Undisturbed) -> None:
    steps, answers = undisturbed
    gold = {f"{q['id']}-{number}": q["answers"][0] for number in range(ROUNDS) for q in sample()}
    assert {key: answer for key, _, answer, *_ in answers} == gold
    for *_, weighing in answers:
        assert [chain["number"] for chain in weighing["chains"]] == [0, 1, 2]
        assert weighing["chosen"] == 0
        assert {fact["origin"] for fact in weighing["facts"]} == {"kept"}
    kinds = [step[2] for step in steps]
    assert kinds.count("reason") == 3 * len(gold)
    assert kinds.count("retrieve") >= kinds.count("entail") == kinds.count("embed") - len(gold)


def test_all_look_ups_of_a_question_are_in_the_queue_at_once(engine: Engine, undisturbed: Undisturbed) -> None:
    staggered = """
        SELECT count(*) FROM (
            SELECT question_id FROM steps WHERE kind = 'retrieve' OR kind = 'entail'
            GROUP BY question_id, kind HAVING count(DISTINCT created_at) > 1
        ) AS questions
    """
    assert count(engine, "", staggered) == 0


@pytest.mark.parametrize(
    "name", ["evidence", *(pytest.param(name, marks=pytest.mark.slow(group=7)) for name in ("generation", "retrieval"))]
)
def test_a_run_goes_on_after_kill_9_and_up(
    name: str, cotrail: Cotrail, engine: Engine, submit: Callable[[], str], undisturbed: Undisturbed
) -> None:
    steps, answers = undisturbed
    run = kill_in_mid_run(cotrail, engine, name, submit, len(steps))
    is_as_undisturbed(engine, run, steps)
    assert answers_of(engine, run) == answers
