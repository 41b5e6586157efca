"""`kill -9` of any worker while chains of queries are corrected and completed: the run finishes with the steps and the
trees that an undisturbed run has, each step once. The model is scripted and reads the documents too; the searches are
real.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.chaos.checks import every_tree_has_all
from tests.faults.scripts import MODELS, sample, scripts
from tests.faults.stacked import Cotrail, Undisturbed, answers_of, is_as_undisturbed, kill_in_mid_run
from tests.homes import asked_often, home_of

ROUNDS = 2
"""How often the sample's questions are asked."""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home with all that the run needs but its corpus."""
    with home_of(scripts() | {"models.toml": MODELS, "questions.jsonl": asked_often(sample(), ROUNDS)}) as made:
        yield made


@pytest.fixture(scope="module")
def submit(cotrail: Cotrail, home: Path) -> Callable[[], str]:
    """Submits the run; returns its id."""

    def submit() -> str:
        options = f"--system searchain --dataset jsonl --corpus sample --questions {home}/questions.jsonl --json"
        return str(json.loads(cotrail("submit", *options.split()).splitlines()[-1])["run"])

    return submit


def test_every_chain_is_corrected_then_completed_and_traced(engine: Engine, undisturbed: Undisturbed) -> None:
    _, answers = undisturbed
    gold = {f"{q['id']}-{number}": q["answers"][0] for number in range(ROUNDS) for q in sample()}
    assert {key: tree["stated"] for key, *_, tree in answers} == gold
    assert {tree["rounds"] for *_, tree in answers} == {3}
    with engine.connect() as connection:
        assert every_tree_has_all(connection) == []


@pytest.mark.parametrize("name", ["generation", pytest.param("retrieval", marks=pytest.mark.slow(group=7))])
def test_a_run_goes_on_after_kill_9_and_up(
    name: str, cotrail: Cotrail, engine: Engine, submit: Callable[[], str], undisturbed: Undisturbed
) -> None:
    steps, answers = undisturbed
    run = kill_in_mid_run(cotrail, engine, name, submit, len(steps))
    is_as_undisturbed(engine, run, steps)
    assert answers_of(engine, run) == answers
