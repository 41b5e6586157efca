"""A whole experiment on a real stack: killed on the way, it gives the tables that an undisturbed one gives."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import Engine, text

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from cotrail.workers.stack.stack import Stack
from tests.conftest import Eventually
from tests.integration.serving import serving

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "cotrail" / "sample"
QUICK = {"COTRAIL_LEASE_SECONDS": "3", "COTRAIL_HEARTBEAT_SECONDS": "0.5", "COTRAIL_RESEND_SECONDS": "1"}

EXPERIMENT = """
name = "{name}"
readers = ["direct", "cot", "none"]
demonstration_sets = 2
demonstrations_per_set = 3
development_questions = 8
test_questions = 20

[grid]
ircot_counts = [1, 4]
one_step_counts = [1, 5]
distractors = [1]

[datasets.jsonl]
questions = "questions.jsonl"
corpus = "sample"
demonstrations = {{ cot = "demonstrations.txt" }}
"""
STEPS = """
    SELECT cell, key, sequence, steps.kind, fingerprint, result->>'text', steps.state
    FROM steps JOIN questions ON questions.id = question_id JOIN runs ON runs.id = steps.run_id
    WHERE experiment_id = :experiment ORDER BY cell, key, sequence
"""
COMPUTED_TWICE = """
    SELECT count(*) FROM (
        SELECT 1 FROM steps WHERE shared_in = :experiment AND adopted_from IS NULL AND state = 'finished'
        GROUP BY fingerprint HAVING count(*) > 1
    ) AS twice
"""

OF_STEPS = "SELECT {} FROM steps JOIN runs ON runs.id = run_id WHERE experiment_id = :experiment AND {}"
RECORDED = {
    name: [
        OF_STEPS.format(counted, f"{which} AND kind IN ('reason', 'read')")
        for which in ("true", "adopted_from IS NOT NULL", "adopted_from IS NULL")
    ]
    for name, counted in (("model_calls", "count(*)"), ("prompt_tokens", "sum(prompt_tokens)"))
}
"""What was asked for, adopted and made."""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ce-"))
    sample = [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text().splitlines()]
    chains = {q["question"]: {"sentences": q["chain"], "answer": q["answers"][0]} for q in sample}
    (folder / "script.json").write_text(json.dumps({"name": "sample", "questions": chains}))
    (folder / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
    for name in ("questions.jsonl", "demonstrations.txt"):
        shutil.copy(SAMPLE / name, folder / name)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def environment(home: Path) -> dict[str, str]:
    return {**os.environ, **QUICK, "COTRAIL_HOME": str(home), "COTRAIL_MODEL": "scripted"}


Cotrail = Callable[..., str]


@pytest.fixture(scope="module")
def cotrail(home: Path, environment: dict[str, str]) -> Iterator[Cotrail]:
    own = Settings(home=home, database_url=None, broker_url=None)

    def cotrail(*arguments: str) -> str:
        done = subprocess.run(_command(*arguments), env=environment, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    try:
        cotrail("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
        cotrail("up")
        yield cotrail
    finally:
        Stack(own).remove()


@pytest.fixture(scope="module")
def engine(home: Path, cotrail: Cotrail) -> Iterator[Engine]:
    engine = connect(Settings(home=home, database_url=None).database)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def undisturbed(home: Path, cotrail: Cotrail) -> dict[str, Any]:
    """The report of an experiment that nothing happened to."""
    return _last(cotrail("experiment", "run", str(_file(home, "undisturbed")), "--json"))


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cotrail.cli.main", *arguments]


def _file(home: Path, name: str) -> Path:
    path = home / f"{name}.toml"
    path.write_text(EXPERIMENT.format(name=name))
    return path


def _last(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def _rows(engine: Engine, experiment: str) -> list[Any]:
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(STEPS), {"experiment": experiment})]


def _count(engine: Engine, query: str, experiment: str) -> int:
    with engine.begin() as connection:
        return int(connection.execute(text(query), {"experiment": experiment}).scalar_one())


def _has_more(engine: Engine, experiment: str, steps: int) -> bool:
    return len([row for row in _rows(engine, experiment) if row[-1] == "finished"]) > steps


def _tables(report: dict[str, Any]) -> dict[str, Any]:
    """What the report says of quality; who computed a step first may differ, and how long it took."""
    return {table["name"]: table for table in report["tables"] if table["name"] not in ("costs", "totals")}


def test_killed_twice_it_gives_the_tables_of_an_undisturbed_one(
    home: Path,
    cotrail: Cotrail,
    environment: dict[str, str],
    engine: Engine,
    undisturbed: dict[str, Any],
    eventually: Eventually,
) -> None:
    file = _file(home, "killed")
    everything = len(_rows(engine, "undisturbed"))
    for part in (everything // 10, everything // 2):
        process = subprocess.Popen(_command("experiment", "run", str(file)), env=environment, cwd=ROOT)
        eventually(partial(_has_more, engine, "killed", part), f"{part} steps are done")
        worker = next(s for s in json.loads(cotrail("stack", "--json"))["services"] if s["name"] == "generation")
        psutil.Process(worker["pid"]).kill()
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        cotrail("up")
    report = _last(cotrail("experiment", "run", str(file), "--json"))
    assert _tables(report) == _tables(undisturbed)
    assert _rows(engine, "killed") == _rows(engine, "undisturbed")


@pytest.mark.slow(group=6)
def test_a_server_conducts_one_through_killed_maintenance_to_the_same_tables(
    home: Path,
    cotrail: Cotrail,
    environment: dict[str, str],
    engine: Engine,
    undisturbed: dict[str, Any],
    eventually: Eventually,
) -> None:
    file, part = _file(home, "served"), len(_rows(engine, "undisturbed")) // 4
    with serving(environment, home / "server.log") as server:
        command = _command("--server", server.url, "experiment", "run", str(file), "--json")
        following = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        eventually(partial(_has_more, engine, "served", part), f"{part} steps are done")
        conductor = next(s for s in json.loads(cotrail("stack", "--json"))["services"] if s["name"] == "maintenance")
        psutil.Process(conductor["pid"]).kill()
        cotrail("up")
        output, _ = following.communicate()
        assert following.returncode == 0
        for shown in ("report", "show"):
            doors: tuple[tuple[str, ...], ...] = ((), ("--server", server.url))
            here, there = (cotrail(*where, "experiment", shown, "served", "--json") for where in doors)
            assert here == there
        assert cotrail("experiment", "report", "served") == cotrail(
            "--server", server.url, "experiment", "report", "served"
        )
        [job] = json.loads(cotrail("--server", server.url, "jobs", "--json"))["jobs"]
    assert _tables(_last(output)) == _tables(undisturbed)
    assert _rows(engine, "served") == _rows(engine, "undisturbed")
    assert (job["state"], job["result"]["experiment"]) == ("finished", "served")


def test_nothing_is_computed_twice(engine: Engine, undisturbed: dict[str, Any]) -> None:
    assert undisturbed["adopted"] > undisturbed["steps"] // 2
    assert _count(engine, COMPUTED_TWICE, "undisturbed") == 0


def test_what_was_adopted_was_not_spent(engine: Engine, undisturbed: dict[str, Any]) -> None:
    [totals] = [table for table in undisturbed["tables"] if table["name"] == "totals"]
    rows = [row["values"] for row in totals["rows"]]
    spent = {
        name: tuple(sum(row[name] for row in rows if row["work"] == work) for work in ("asked for", "adopted", "made"))
        for name in ("steps", "model_calls", "prompt_tokens")
    }
    assert spent["steps"][:2] == (undisturbed["steps"], undisturbed["adopted"])
    for name, recorded in RECORDED.items():
        assert spent[name] == tuple(_count(engine, query, "undisturbed") for query in recorded)


def test_without_reuse_everything_is_computed_and_comes_out_the_same(
    home: Path, cotrail: Cotrail, engine: Engine, undisturbed: dict[str, Any]
) -> None:
    report = _last(cotrail("experiment", "run", str(_file(home, "alone")), "--no-reuse", "--json"))
    assert report["adopted"] == 0
    assert _tables(report) == _tables(undisturbed)
    assert _rows(engine, "alone") == _rows(engine, "undisturbed")


def test_one_that_is_done_is_done(home: Path, cotrail: Cotrail, undisturbed: dict[str, Any]) -> None:
    again = _last(cotrail("experiment", "run", str(home / "undisturbed.toml"), "--json"))
    assert again == undisturbed


def test_a_file_that_changed_is_refused(home: Path, environment: dict[str, str], undisturbed: dict[str, Any]) -> None:
    changed = home / "changed.toml"
    changed.write_text(EXPERIMENT.format(name="undisturbed").replace("test_questions = 20", "test_questions = 21"))
    refused = subprocess.run(
        _command("experiment", "run", str(changed)), env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert "test_questions" in refused.stderr
    assert "another name" in refused.stderr


def test_it_can_be_read_back(home: Path, cotrail: Cotrail, undisturbed: dict[str, Any]) -> None:
    shown = _last(cotrail("experiment", "show", "undisturbed", "--json"))
    assert len(shown["runs"]) == undisturbed["runs"] == undisturbed["planned"]
    assert {sum(run["questions"].values()) for run in shown["runs"].values()} == {8, 20}
    assert shown["plan"]["experiment"]["grid"] == {
        "ircot_counts": [1, 4],
        "one_step_counts": [1, 5],
        "distractors": [1],
    }
