"""`kill -9` of the worker before and behind the edited step of a fork: the steps of an undisturbed fork, once each, and
the edit as it was made. The model is scripted, the search real.
"""

import json
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.conftest import Eventually
from tests.faults import inner
from tests.faults.inner.points import Point, Points
from tests.faults.scripts import MODELS, sample, scripts
from tests.faults.stacked import (
    SAMPLE,
    Cotrail,
    count,
    is_as_undisturbed,
    kill_at_each_step,
    open_questions,
    stacked,
    steps_of,
)
from tests.homes import home_of

EDITS = "SELECT sequence, edit FROM steps WHERE run_id = :run AND edit IS NOT NULL"
SEALED = "SELECT count(*) FROM runs WHERE id = :run AND digest IS NOT NULL"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home with all that the run needs but its corpus."""
    with home_of(scripts() | {"models.toml": MODELS, "questions.jsonl": sample()[:1]}) as made:
        yield made


@pytest.fixture(scope="module")
def cotrail(home: Path) -> Iterator[Cotrail]:
    """The command line of a stack whose processes die where a test says so."""
    with stacked(home, inner.environment()) as run:
        run("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
        run("up")
        yield run


@pytest.fixture(scope="module")
def origin(home: Path, cotrail: Cotrail, engine: Engine, eventually: Eventually) -> str:
    """A run that has ended."""
    options = f"--system ircot --dataset jsonl --corpus sample --questions {home}/questions.jsonl --json"
    submitted = cotrail("submit", *options.split(), "--demonstrations", str(SAMPLE / "demonstrations.txt"))
    run = str(json.loads(submitted.splitlines()[-1])["run"])
    eventually(lambda: count(engine, run, SEALED) == 1, "the origin is sealed", 120)
    return run


def edits(engine: Engine, run: str) -> list[tuple[int, dict[str, str]]]:
    with engine.begin() as connection:
        return [(row.sequence, row.edit) for row in connection.execute(text(EDITS), {"run": run})]


@pytest.mark.parametrize(
    ("at", "part", "value", "worker"),
    [
        (1, "text", "The Drowned Bell is a novel.", "generation"),
        pytest.param(2, "query", "Wendelmouth", "retrieval", marks=pytest.mark.slow(group=4)),
        pytest.param(1, "prompt", "Q: {question}\nA:", "generation", marks=pytest.mark.slow(group=4)),
    ],
)
def test_a_worker_that_is_killed_around_an_edited_step_leaves_the_same_steps(
    at: int,
    part: str,
    value: str,
    worker: str,
    home: Path,
    cotrail: Cotrail,
    engine: Engine,
    origin: str,
    eventually: Eventually,
) -> None:
    key, written = sample()[0]["id"], value.format(question=sample()[0]["question"])

    def fork() -> str:
        options = ["--question", key, "--at", str(at), f"--{part}", written, "--json"]
        return str(json.loads(cotrail("fork", origin, *options))["run"])

    undisturbed = fork()
    eventually(lambda: open_questions(engine, undisturbed) == 0, "the undisturbed fork is finished", 120)
    steps = steps_of(engine, undisturbed)
    assert edits(engine, undisturbed) == [(at, {part: written, "by": "local"})]

    # The edited step is the first that the fork has this worker carry out.
    points, places = Points(inner.folder(home)), chain([Point.CLAIMED], repeat(Point.COMMITTED))
    run, deaths = kill_at_each_step(cotrail, engine, worker, fork, points, places)
    assert deaths[:2] == [Point.CLAIMED, Point.COMMITTED]
    is_as_undisturbed(engine, run, steps)
    assert edits(engine, run) == edits(engine, undisturbed)
