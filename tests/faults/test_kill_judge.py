"""`kill -9` of the generation worker before and behind every step of a judge's run: the verdicts of an undisturbed run,
once each, and the judged run as it was. The model is scripted, and asked claim by claim and in both orders.
"""

import json
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.conftest import Eventually
from tests.faults import inner
from tests.faults.inner.points import Point, Points
from tests.faults.scripts import MODELS, sample, scripts
from tests.faults.stacked import (
    SAMPLE,
    Cotrail,
    answers_of,
    count,
    is_as_undisturbed,
    kill_at_each_step,
    open_questions,
    stacked,
    steps_of,
)
from tests.homes import home_of

ASKED = 1
"""How many of the sample's questions are judged: each verdict takes several steps, and each step a death or two."""

GENERATION = "generation"
CLAIMS = ("It is so.", "It is otherwise.")
WHOLE = "SELECT row_to_json(questions)::text FROM questions WHERE run_id = :run ORDER BY id"


def judging() -> dict[str, Any]:
    """A judge that supports the first of two claims, and prefers whatever it is shown first."""
    listed = json.dumps({"claims": CLAIMS})
    verdicts = [("supported", [1]), ("unsupported", [])]
    claims = {
        claim: {"answer": json.dumps({"reasoning": "I read it.", "verdict": verdict, "cited": cited})}
        for claim, (verdict, cited) in zip(CLAIMS, verdicts, strict=True)
    }
    preferred = json.dumps({"reasoning": "Both do.", "verdict": "first", "confidence": 60})
    return {
        "judge.json": {"name": "judge", "questions": claims, "default": {"answer": listed}},
        "preferring.json": {"name": "preferring", "questions": {}, "default": {"answer": preferred}},
    }


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home with all that the runs need but their corpus."""
    judges = "".join(
        f'\n[models.{name}]\nengine = "scripted"\npath = "{name}.json"\n' for name in ("judge", "preferring")
    )
    files = {"models.toml": MODELS + judges, "questions.jsonl": sample()[:ASKED]}
    with home_of(scripts() | judging() | files) as made:
        yield made


@pytest.fixture(scope="module")
def cotrail(home: Path) -> Iterator[Cotrail]:
    """The command line of a stack whose processes die where a test says so."""
    with stacked(home, inner.environment()) as run:
        run("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
        run("up")
        yield run


@pytest.fixture(scope="module")
def judged(home: Path, cotrail: Cotrail, engine: Engine, eventually: Eventually) -> list[str]:
    """Two runs that have ended and are sealed."""
    options = f"--system one-step --dataset jsonl --corpus sample --questions {home}/questions.jsonl --json"
    submitted = [cotrail("submit", *options.split(), "--seed", seed) for seed in ("0", "1")]
    ids = [str(json.loads(printed.splitlines()[-1])["run"]) for printed in submitted]
    sealed = "SELECT count(*) FROM runs WHERE id = :run AND digest IS NOT NULL"
    eventually(lambda: all(count(engine, run, sealed) for run in ids), "the judged runs are sealed", 120)
    return ids


def rows(engine: Engine, query: str, run: str) -> list[Any]:
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(query), {"run": run})]


@pytest.mark.parametrize("rubric", ["faithful", pytest.param("preference", marks=pytest.mark.slow(group=4))])
def test_a_judge_that_is_killed_at_every_step_gives_the_same_verdicts_once(
    rubric: str, home: Path, cotrail: Cotrail, engine: Engine, judged: list[str], eventually: Eventually
) -> None:
    one, other = judged
    options = ["--rubric", rubric, "--json"]
    options += ["--model", "judge"] if rubric == "faithful" else ["--model", "preferring", "--against", other]

    def judge() -> str:
        [submitted] = json.loads(cotrail("judge", one, *options))
        return str(submitted["run"])

    before = rows(engine, WHOLE, one)
    undisturbed = judge()
    eventually(lambda: open_questions(engine, undisturbed) == 0, "the undisturbed run is finished", 120)
    steps, answers = steps_of(engine, undisturbed), answers_of(engine, undisturbed)
    assert len(steps) == ASKED * (1 + len(CLAIMS) if rubric == "faithful" else 2)
    assert {status for _, status, *_ in answers} == {"finished"}

    points, places = Points(inner.folder(home)), cycle([Point.COMMITTED, Point.EXECUTED])
    run, deaths = kill_at_each_step(cotrail, engine, GENERATION, judge, points, places)
    assert {Point.COMMITTED, Point.EXECUTED} <= set(deaths)
    is_as_undisturbed(engine, run, steps)
    assert answers_of(engine, run) == answers
    assert rows(engine, WHOLE, one) == before
