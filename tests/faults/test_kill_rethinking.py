"""`kill -9` of any worker while chains are sampled and weighed: the run finishes with the steps and the answers that an
undisturbed run has, each step once. The models are scripted, the searches real.
"""

import json
import os
import shutil
import signal
import tempfile
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
    finished_steps,
    is_as_undisturbed,
    open_questions,
    process,
    steps_of,
)

ROUNDS = 2
"""How often the sample's questions are asked."""

Undisturbed = tuple[list[Any], list[Any]]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home with all that the run needs but its corpus."""
    folder = Path(tempfile.mkdtemp(prefix="cr-"))
    for name, content in scripts().items():
        (folder / name).write_text(json.dumps(content))
    (folder / "models.toml").write_text(MODELS)
    (folder / "run.toml").write_text(RUN)
    asked = [{**q, "id": f"{q['id']}-{number}"} for number in range(ROUNDS) for q in sample()]
    (folder / "questions.jsonl").write_text("\n".join(json.dumps(q) for q in asked))
    yield folder
    shutil.rmtree(folder)


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
    name: str,
    cotrail: Cotrail,
    engine: Engine,
    submit: Callable[[], str],
    undisturbed: Undisturbed,
    eventually: Eventually,
) -> None:
    steps, answers = undisturbed
    victim = process(cotrail, name)
    run = submit()
    eventually(lambda: finished_steps(engine, run) > len(steps) // 4, "a quarter of the steps are finished")
    assert open_questions(engine, run) > 0, "the run was over before the kill: ask more questions"
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait(10)
    cotrail("up")
    eventually(lambda: open_questions(engine, run) == 0, "the run is finished", 120)
    is_as_undisturbed(engine, run, steps)
    assert answers_of(engine, run) == answers
