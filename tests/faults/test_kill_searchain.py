"""`kill -9` of any worker while chains of queries are corrected and completed: the run finishes with the steps and the
trees that an undisturbed run has, each step once. The model is scripted and reads the documents too; the searches are
real.
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

from tests.chaos.checks import every_tree_has_all
from tests.conftest import Eventually
from tests.faults.scripts import MODELS, sample, scripts
from tests.faults.stacked import Cotrail, finished_steps, is_as_undisturbed, open_questions, process, steps_of

ROUNDS = 2
"""How often the sample's questions are asked."""

Undisturbed = tuple[list[Any], list[Any]]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home with all that the run needs but its corpus."""
    folder = Path(tempfile.mkdtemp(prefix="ch-"))
    for name, content in scripts().items():
        (folder / name).write_text(json.dumps(content))
    (folder / "models.toml").write_text(MODELS)
    asked = [{**q, "id": f"{q['id']}-{number}"} for number in range(ROUNDS) for q in sample()]
    (folder / "questions.jsonl").write_text("\n".join(json.dumps(q) for q in asked))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def submit(cotrail: Cotrail, home: Path) -> Callable[[], str]:
    """Submits the run; returns its id."""

    def submit() -> str:
        options = f"--system searchain --dataset jsonl --corpus sample --questions {home}/questions.jsonl --json"
        return str(json.loads(cotrail("submit", *options.split()).splitlines()[-1])["run"])

    return submit


@pytest.fixture(scope="module")
def undisturbed(engine: Engine, submit: Callable[[], str], eventually: Eventually) -> Undisturbed:
    """The steps of a run that nothing happened to, and its answers with their trees."""
    run = submit()
    eventually(lambda: open_questions(engine, run) == 0, "the undisturbed run is finished", 120)
    return steps_of(engine, run), answers_of(engine, run)


def answers_of(engine: Engine, run: str) -> list[Any]:
    query = "SELECT key, status, answer, sentences, collected, weighing FROM questions WHERE run_id = :run ORDER BY key"
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(query), {"run": run})]


def test_every_chain_is_corrected_then_completed_and_traced(engine: Engine, undisturbed: Undisturbed) -> None:
    _, answers = undisturbed
    gold = {f"{q['id']}-{number}": q["answers"][0] for number in range(ROUNDS) for q in sample()}
    assert {key: tree["stated"] for key, *_, tree in answers} == gold
    assert {tree["rounds"] for *_, tree in answers} == {3}
    with engine.connect() as connection:
        assert every_tree_has_all(connection) == []


@pytest.mark.parametrize("name", ["generation", pytest.param("retrieval", marks=pytest.mark.slow(group=7))])
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
