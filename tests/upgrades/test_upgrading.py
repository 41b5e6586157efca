"""Runs that were begun under former code finish under today's, with the steps of runs that today's code did alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from cotrail.audit.verification import verify
from cotrail.models.queries.repeated_steps import replay_run
from cotrail.models.records.trail import read_trail
from cotrail.systems.registry import find_system
from tests.conftest import Eventually
from tests.faults.stacked import Cotrail, count, open_questions
from tests.upgrades.making import RUNS, submit

STEPS = """
    SELECT key, sequence, steps.kind, result, failure, steps.state, fingerprint,
        (SELECT text FROM sentences WHERE step_id = steps.id),
        (SELECT json_agg((rank, digest, score, query) ORDER BY rank) FROM paragraph_sets WHERE step_id = steps.id)
    FROM steps JOIN questions ON questions.id = question_id
    WHERE steps.run_id = :run ORDER BY key, sequence
"""
ANSWERS = "SELECT key, status, answer, sentences, collected, weighing FROM questions WHERE run_id = :run ORDER BY key"
ENDED = """
    SELECT id, kind, fingerprint, result, failure, finished_at, attempts.*
    FROM steps JOIN attempts ON step_id = id WHERE state IN ('finished', 'failed') ORDER BY id, attempts.epoch
"""

Rows = list[Any]


def rows(engine: Engine, query: str, run: str = "") -> Rows:
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(query), {"run": run})]


@pytest.fixture(scope="module")
def left(store: Path) -> dict[str, str]:
    """The runs that former code left, by their names in `RUNS`."""
    read: dict[str, str] = json.loads((store / "runs.json").read_text())
    return read


@pytest.fixture(scope="module")
def ended(engine: Engine) -> Rows:
    """What had ended under former code, before anything of today's ran."""
    return rows(engine, ENDED)


@pytest.fixture(scope="module")
def upgraded(cotrail: Cotrail, engine: Engine, left: dict[str, str], ended: Rows, eventually: Eventually) -> Engine:
    """The store after `cotrail up` and when all of its runs have come to their end."""
    unfinished = "SELECT count(*) FROM questions JOIN runs ON runs.id = run_id WHERE status IN ('open', 'blocked')"
    assert count(engine, "", unfinished) > 0
    cotrail("up")
    cotrail("resume", left["paused"])
    eventually(lambda: not any(open_questions(engine, run) for run in left.values()), "all runs are finished", 120)
    return engine


@pytest.mark.parametrize("name", RUNS)
def test_a_run_finishes_as_if_it_had_been_todays(
    name: str, home: Path, cotrail: Cotrail, upgraded: Engine, left: dict[str, str], eventually: Eventually
) -> None:
    todays = submit(home, cotrail, name)
    eventually(lambda: open_questions(upgraded, todays) == 0, "today's run is finished", 120)
    assert rows(upgraded, ANSWERS, left[name]) == rows(upgraded, ANSWERS, todays)
    assert rows(upgraded, STEPS, left[name]) == rows(upgraded, STEPS, todays)


def test_an_experiment_goes_on_and_computes_nothing_twice(home: Path, cotrail: Cotrail, upgraded: Engine) -> None:
    adopted = "SELECT count(*) FROM steps WHERE adopted_from IS NOT NULL"
    before = count(upgraded, "", adopted)
    report = json.loads(cotrail("experiment", "run", str(home / "grid.toml"), "--json").splitlines()[-1])
    assert report["runs"] == report["planned"]
    assert report["adopted"] == count(upgraded, "", adopted) > before
    twice = """
        SELECT count(*) FROM (
            SELECT 1 FROM steps WHERE shared_in = 'grid' AND adopted_from IS NULL AND state = 'finished'
            GROUP BY fingerprint HAVING count(*) > 1
        ) AS twice
    """
    assert count(upgraded, "", twice) == 0


def test_what_had_ended_is_as_it_was(upgraded: Engine, ended: Rows) -> None:
    now = set(map(repr, rows(upgraded, ENDED)))
    assert ended
    assert {repr(row) for row in ended} <= now


def test_every_run_replays(upgraded: Engine) -> None:
    for (run,) in rows(upgraded, "SELECT id FROM runs"):
        with upgraded.connect() as connection:
            assert [question.key for question in replay_run(connection, run, find_system) if question.divergence] == []


def test_every_run_verifies(upgraded: Engine) -> None:
    for (run,) in rows(upgraded, "SELECT id FROM runs"):
        with upgraded.connect() as connection:
            assert [str(finding) for finding in verify(read_trail(connection, run)).findings] == []
