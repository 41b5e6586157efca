"""`kill -9` of any worker while chains are sampled and weighed: the run finishes with the steps and the answers that an
undisturbed run has, each step once. The models are scripted, the searches real.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.faults.scripts import MODELS, RUN, sample, scripts
from tests.faults.stacked import SAMPLE, Cotrail, Undisturbed, answers_of, count, is_as_undisturbed, kill_in_mid_run
from tests.homes import asked_often, home_of

ROUNDS = 2
"""How often the sample's questions are asked."""


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
