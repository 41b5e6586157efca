"""`kill -9` of workers while budgets end questions: a question's ends in the same place as undisturbed, and a run's
begins nothing more, whoever adds up what was taken.
"""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from cotrail.models.queries.repeated_steps import replay_run
from cotrail.systems.registry import find_system
from tests.conftest import Eventually
from tests.faults.scripts import MODELS, sample, scripts
from tests.faults.stacked import Cotrail, finished_steps, is_as_undisturbed, open_questions, process, steps_of
from tests.homes import asked_often, home_of

ROUNDS = 3
"""How often the sample's questions are asked."""

ENDS = "SELECT key, status, ended_by, halted, answer FROM questions WHERE run_id = :run ORDER BY key"
COUNTED = "SELECT count(*) FROM steps WHERE run_id = :run AND state IN ('finished', 'failed')"
CONSUMED = "SELECT steps FROM run_consumption WHERE run_id = :run"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home with all that the run needs but its corpus."""
    with home_of(scripts() | {"models.toml": MODELS, "questions.jsonl": asked_often(sample(), ROUNDS)}) as made:
        yield made


def submit(cotrail: Cotrail, home: Path, *budget: str) -> str:
    options = f"--system searchain --dataset jsonl --corpus sample --questions {home}/questions.jsonl --json"
    return str(json.loads(cotrail("submit", *options.split(), *budget).splitlines()[-1])["run"])


def rows(engine: Engine, query: str, run: str) -> list[Any]:
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(query), {"run": run})]


def kill(cotrail: Cotrail, name: str) -> None:
    victim = process(cotrail, name)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait(10)
    cotrail("up")


def replays(engine: Engine, run: str) -> None:
    with engine.connect() as connection:
        assert [each.divergence for each in replay_run(connection, run, find_system) if each.divergence] == []


def test_a_question_s_budget_ends_it_in_the_same_place(
    home: Path, cotrail: Cotrail, engine: Engine, eventually: Eventually
) -> None:
    budget = ("--question-budget", "steps=4")
    undisturbed = submit(cotrail, home, *budget)
    eventually(lambda: open_questions(engine, undisturbed) == 0, "the undisturbed run is finished", 120)
    steps, ends = steps_of(engine, undisturbed), rows(engine, ENDS, undisturbed)
    assert {(status, end) for _, status, end, *_ in ends} == {("finished", "limit: steps")}
    run = submit(cotrail, home, *budget)
    for share, name in enumerate(("generation", "retrieval", "maintenance"), start=1):
        eventually(lambda part=share: finished_steps(engine, run) > part * len(steps) // 5, "steps are finished")
        kill(cotrail, name)
    eventually(lambda: open_questions(engine, run) == 0, "the run is finished", 120)
    is_as_undisturbed(engine, run, steps)
    assert rows(engine, ENDS, run) == ends
    replays(engine, run)


def test_a_run_s_budget_counts_every_step_once_and_begins_nothing_more(
    home: Path, cotrail: Cotrail, engine: Engine, eventually: Eventually
) -> None:
    run = submit(cotrail, home, "--run-budget", "steps=60")
    eventually(lambda: finished_steps(engine, run) > 20, "steps are finished")
    kill(cotrail, "generation")
    eventually(lambda: open_questions(engine, run) == 0, "the run is finished", 120)
    ends = {(status, end) for _, status, end, *_ in rows(engine, ENDS, run)}
    # Whether questions are left that haven't begun, which are cancelled, depends on the machine.
    assert "limit: run steps" in {end for _, end in ends}
    assert ends <= {("finished", "limit: run steps"), ("cancelled", "limit: run steps"), ("finished", "answer")}
    assert rows(engine, CONSUMED, run) == rows(engine, COUNTED, run)
    replays(engine, run)
