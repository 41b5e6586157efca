"""The protocol of Rethinking with Retrieval on a real stack, from one file: all its runs, shared chains, its tables."""

import json
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from tests.conftest import Eventually
from tests.faults.stacked import COTRAIL, ROOT, Cotrail, environment_of, process, stacked
from tests.integration.three_tasks import ASKED, CHAINS, EXPERIMENT, write_three_tasks

STEPS = """
    SELECT cell, key, sequence, steps.kind, fingerprint, result, steps.state
    FROM steps JOIN questions ON questions.id = question_id JOIN runs ON runs.id = steps.run_id
    WHERE experiment_id = :experiment ORDER BY cell, key, sequence
"""
DONE = (
    "SELECT count(*) FROM steps JOIN runs ON runs.id = run_id WHERE experiment_id = :experiment AND result IS NOT NULL"
)
COMPUTED_TWICE = """
    SELECT count(*) FROM (
        SELECT 1 FROM steps WHERE shared_in = :experiment AND adopted_from IS NULL AND steps.state = 'finished'
        GROUP BY fingerprint HAVING count(*) > 1
    ) AS twice
"""
SAMPLED = """
    SELECT count(*) FILTER (WHERE adopted_from IS NULL), count(*)
    FROM steps JOIN runs ON runs.id = run_id
    WHERE experiment_id = :experiment AND kind = 'reason' AND system IN ('rethinking', 'self-consistency')
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="cp-"))
    write_three_tasks(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def cotrail(home: Path) -> Iterator[Cotrail]:
    with stacked(home) as run:
        for name in ("facts", "evidence"):
            run("index", str(home / "facts.jsonl"), "--name", name)
        run("up")
        yield run


@pytest.fixture(scope="module")
def engine(home: Path, cotrail: Cotrail) -> Iterator[Engine]:
    engine = connect(Settings(home=home, database_url=None).database)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def undisturbed(home: Path, cotrail: Cotrail) -> dict[str, Any]:
    """The report of an experiment that nothing happened to."""
    return _last(cotrail("experiment", "run", _file(home, "undisturbed"), "--json"))


def _file(home: Path, name: str, content: str = EXPERIMENT) -> str:
    path = home / f"{name}.toml"
    path.write_text(content.format(name=name))
    return str(path)


def _last(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def _ask(engine: Engine, query: str, experiment: str) -> list[Any]:
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(text(query), {"experiment": experiment})]


def _rows(report: dict[str, Any], table: str) -> list[dict[str, Any]]:
    """The rows of a table that are one's own."""
    (found,) = (each for each in report["tables"] if each["name"] == table)
    return [row["values"] for row in found["rows"] if not row["published"]]


def _quality(report: dict[str, Any]) -> list[Any]:
    """What the report says of quality; who computed a step first may differ, and how long it took."""
    return [table for table in report["tables"] if table["name"] not in ("costs", "totals")]


def test_one_file_fills_the_papers_tables(undisturbed: dict[str, Any]) -> None:
    assert undisturbed["runs"] == undisturbed["planned"] == 28
    assert undisturbed["stuck"] == []
    names = [table["name"] for table in undisturbed["tables"]]
    assert names == [
        *(
            "runs",
            "methods",
            "retrieval",
            "knowledge",
            "variants",
            "inference",
            "chains",
            "contrasts",
            "costs",
            "totals",
        )
    ]
    assert {row["questions"] for row in _rows(undisturbed, "runs")} == set(ASKED.values())
    assert {row["answered"] - row["questions"] for row in _rows(undisturbed, "runs")} == {0}
    by_method = {(row["run"].split("/")[0], row["label"]): row for row in _rows(undisturbed, "methods")}
    assert len(by_method) == len(_rows(undisturbed, "methods")) == 3 * 5
    tasks = {"strategyqa": "commonsense", "tempquestions": "temporal", "infotabs": "tabular"}
    for dataset, task in tasks.items():
        assert by_method[dataset, "Zero-shot prompting"][task] == 0
        assert by_method[dataset, "Self-consistency"][task] == 0
        assert by_method[dataset, "Rethinking with retrieval"][task] == 1


def test_each_ablation_stands_where_the_paper_has_it(undisturbed: dict[str, Any]) -> None:
    assert {row["label"]: row["run"].split("/")[0] for row in _rows(undisturbed, "knowledge")} == {
        "External": "infotabs",
        "Background": "infotabs",
        "Background + External": "infotabs",
    }
    queried = {(row["label"], row["run"].split("/")[0]) for row in _rows(undisturbed, "retrieval")}
    assert {(label, dataset) for label, dataset in queried if dataset != "infotabs"} == {
        (label, dataset)
        for label in ("Query-based", "Decomposition-based")
        for dataset in ("strategyqa", "tempquestions")
    }
    variants = {row["label"]: row["run"] for row in _rows(undisturbed, "variants")}
    assert variants.keys() >= {"CoT prompting", "Basic (w/o voting)", "Basic (with voting)", "Variant I", "Variant II"}
    facts = {(row["label"], row["model"]): row["run"] for row in _rows(undisturbed, "inference")}
    ways = ("zero-shot", "CoT")
    assert facts.keys() >= {
        (facts, f"scripted ({way})") for facts in ("Empty facts", "Gold facts", "Generated facts") for way in ways
    }
    assert facts["Gold facts", "scripted (CoT)"] == "strategyqa/scripted/chain-of-thought/gold-facts"
    assert not any("gold-facts" in row["run"] for table in ("methods", "variants") for row in _rows(undisturbed, table))
    assert variants["Variant I"] == "strategyqa/scripted/rethinking/selection"


def test_the_chains_of_all_runs_are_sampled_once(engine: Engine, undisturbed: dict[str, Any]) -> None:
    sampling = {"strategyqa": 7, "tempquestions": 3, "infotabs": 4}
    ((computed, recorded),) = _ask(engine, SAMPLED.format(), "undisturbed")
    likeliest = ASKED["strategyqa"]
    assert computed == CHAINS * sum(ASKED.values()) + likeliest
    assert recorded >= CHAINS * sum(ASKED[dataset] * runs for dataset, runs in sampling.items())
    assert _ask(engine, COMPUTED_TWICE, "undisturbed") == [(0,)]
    spent = {row["run"]: row for row in _rows(undisturbed, "costs")}
    assert sum(row["adopted"] for row in spent.values()) == undisturbed["adopted"] > 0


def test_killed_on_the_way_it_gives_the_tables_of_an_undisturbed_one(
    home: Path, cotrail: Cotrail, engine: Engine, undisturbed: dict[str, Any], eventually: Eventually
) -> None:
    file = _file(home, "killed")
    (everything,) = _ask(engine, DONE, "undisturbed")[0]
    running = subprocess.Popen([*COTRAIL, "experiment", "run", file], env=environment_of(home), cwd=ROOT)
    eventually(lambda: _ask(engine, DONE, "killed")[0][0] > everything // 10, "a tenth of the steps are done")
    process(cotrail, "generation").kill()
    running.send_signal(signal.SIGKILL)
    running.wait(10)
    cotrail("up")
    report = _last(cotrail("experiment", "run", file, "--json"))
    assert _quality(report) == _quality(undisturbed)
    assert _ask(engine, STEPS, "killed") == _ask(engine, STEPS, "undisturbed")


def test_the_report_can_be_printed_and_written(home: Path, cotrail: Cotrail, undisturbed: dict[str, Any]) -> None:
    folder = home / "report"
    assert "77.73" in cotrail("experiment", "report", "undisturbed")
    assert cotrail("experiment", "report", "undisturbed", "--output", str(folder)) == ""
    assert {path.name for path in folder.iterdir()} == {"report.html", "report.md", "runs", "chains.svg", "chains.png"}
    assert len(list((folder / "runs").glob("*.html"))) == undisturbed["runs"]
    assert "arxiv.org/abs/2301.00303" in (folder / "report.html").read_text()
    shown = _last(cotrail("experiment", "show", "undisturbed", "--json"))
    assert shown["plan"]["experiment"]["protocol"] == "rethinking"
    assert len(shown["runs"]) == undisturbed["runs"]
    assert 'protocol = "rethinking"' in cotrail("experiment", "show", "undisturbed")


def test_a_file_that_changed_is_refused(home: Path, undisturbed: dict[str, Any]) -> None:
    changed = EXPERIMENT.replace("{name}", "undisturbed").replace(f"chains = {CHAINS}", "chains = 5")
    file = _file(home, "changed", changed)
    refused = subprocess.run(
        [*COTRAIL, "experiment", "run", file], env=environment_of(home), cwd=ROOT, capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert "experiment.chains" in refused.stderr
    assert undisturbed["runs"] == 28
