"""The protocol of Search-in-the-Chain on a real stack, from one file: all its runs, their trees and its tables."""

import json
from typing import Any

import pytest
from sqlalchemy import text

from tests.faults.stacked import Cotrail
from tests.integration.three_trees import write_three_trees
from tests.leases import Lease


@pytest.fixture(scope="module")
def cotrail(lease: Lease) -> Cotrail:
    write_three_trees(lease.folder)
    scripts = {"models.trees": "script.json", "extractors.reader": "reader.json"}
    lease.add_models(
        "".join(f'[{name}]\nengine = "scripted"\npath = "{lease.folder / file}"\n' for name, file in scripts.items())
    )
    experiment = lease.folder / "trees.toml"
    experiment.write_text(experiment.read_text().replace('models = ["scripted"]', 'models = ["trees"]'))
    lease.cotrail("index", str(lease.folder / "corpus.jsonl"), "--name", "wikipedia")
    return lease.cotrail


@pytest.fixture(scope="module")
def own(lease: Lease, cotrail: Cotrail) -> dict[str, list[dict[str, Any]]]:
    """The tables of the experiment, by their names, without published rows."""
    report = json.loads(cotrail("experiment", "run", str(lease.folder / "trees.toml"), "--json").splitlines()[-1])
    assert (report["runs"], report["planned"], report["stuck"]) == (4, 4, [])
    return {
        table["name"]: [row["values"] for row in table["rows"] if not row["published"]] for table in report["tables"]
    }


def test_each_run_has_its_score(own: dict[str, list[dict[str, Any]]]) -> None:
    assert {row["run"].removeprefix("musique/trees/"): round(3 * row["score"]) for row in own["runs"]} == {
        "searchain": 2,
        "searchain/without-retrieval": 1,
        "searchain/without-verification": 2,
        "searchain/without-completion": 1,
    }
    assert [row["answered"] for row in own["runs"]] == [3] * 4


def test_the_tables_are_those_of_the_trees(own: dict[str, list[dict[str, Any]]]) -> None:
    (sources,) = own["sources"]
    assert (sources["llm"], sources["corrected"], sources["completed"], sources["nodes"]) == (1 / 4, 2 / 4, 1 / 4, 4)
    (effect,) = own["effect"]
    assert (effect["questions"], effect["helped"]) == (3, 3)
    assert (effect["helped_without"], effect["helped_with"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert [row["musique"] for row in own["misled"]] == [1.0]
    assert [(row["2"], row["3"]) for row in own["steps"]] == [(1.5, 1.0)]
    (marks, *_) = own["marks"]
    # The model marks two of the three final contents, and all three marks lead to gold documents.
    assert (marks["marked"], marks["references"], marks["gold"]) == (pytest.approx(2 / 3), 3, 1.0)


def test_words_count_once_and_in_every_call(own: dict[str, list[dict[str, Any]]]) -> None:
    rows = {row["run"].removeprefix("musique/trees/searchain"): row for row in own["efficiency"]}
    assert {name: round(3 * row["rounds"]) for name, row in rows.items()} == {
        "": 6,
        "/without-retrieval": 3,
        "/without-verification": 4,
        "/without-completion": 5,
    }
    assert rows["/without-retrieval"]["read"] == rows["/without-retrieval"]["read_again"]
    assert rows[""]["read"] < rows[""]["read_again"] / 2
    assert 0 < rows["/without-retrieval"]["written"] < rows[""]["written"]


def test_a_trace_draws_what_happened_and_sql_reads_it(
    lease: Lease, cotrail: Cotrail, own: dict[str, list[dict[str, Any]]]
) -> None:
    assert own
    runs = json.loads(cotrail("experiment", "show", "trees", "--json").splitlines()[-1])["runs"]
    run = runs["musique/trees/searchain"]["run"]
    said = cotrail("trace", run, "2hop__1")
    assert "[2] Where does Vell water end? → Amber Sea" in said
    assert "corrected · the model: In the Grey Sea. · the reader: Amber Sea (2.50) · in" in said
    assert 'round 2  feedback: According to the Reference, the answer for "Where does' in said
    heads = [line.split("  ")[-1] for line in said.splitlines() if " reason " in line]
    assert heads == ["round 1", "round 2", "final content"]
    assert "scores EM 100.0 %, F1 100.0 %" in " ".join(said.split())
    assert "marks          Ostmark is crossed by the Vell → [1] Ostmark" in said
    with lease.engine.connect() as connection:
        read = connection.execute(text(f"SELECT source, query FROM reasoning_nodes WHERE run_id = '{run}'"))
        assert ("completed", "Who is the novel Salt by?") in [tuple(row) for row in read]
