"""Comparisons on a real stack: one by no paper, and that of a paper that is one module in a folder of extensions."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.stacked import ROOT, SAMPLE, Cotrail, stacked
from tests.homes import SCRIPTED, home_of

DATASET = """
[datasets.sample]
format = "jsonl"
questions = "questions.jsonl"
corpus = "sample"
demonstrations = "demonstrations.txt"
test_questions = 6
"""
FREE = f"""
protocol = "compare"
name = "free"
systems = ["no-retrieval", "one-step"]

[run]
reader = "cot"

[[variations]]
name = "shallow"
systems = ["one-step"]
run = {{ retrieval_count = 3 }}

[[variations]]
name = "direct"
run = {{ reader = "direct" }}
{DATASET}"""
MADE_UP = f'protocol = "made-up"\nname = "ours"\n{DATASET}'


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    sample = [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text().splitlines()]
    chains = {q["question"]: {"sentences": q["chain"], "answer": q["answers"][0]} for q in sample}
    given = {name: (SAMPLE / name).read_text() for name in ("questions.jsonl", "demonstrations.txt")}
    files = {"script.json": {"name": "sample", "questions": chains}, "models.toml": SCRIPTED}
    with home_of(given | files | {"free.toml": FREE, "ours.toml": MADE_UP}) as made:
        (made / "extensions").mkdir()
        shutil.copy(ROOT / "tests" / "extensions" / "made_paper.py", made / "extensions")
        yield made


@pytest.fixture(scope="module")
def cotrail(home: Path) -> Iterator[Cotrail]:
    with stacked(home) as run:
        run("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
        run("up")
        yield run


def last(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def test_a_comparison_has_a_run_for_each_cell_and_a_table_of_their_scores(home: Path, cotrail: Cotrail) -> None:
    done = last(cotrail("experiment", "run", str(home / "free.toml"), "--json"))
    assert (done["runs"], done["planned"], done["questions"], done["stuck"]) == (5, 5, 30, [])
    tables = {table["name"]: [row["values"] for row in table["rows"]] for table in done["tables"]}
    assert [(row["system"], row["variation"], row["answered"]) for row in tables["scores"]] == [
        ("no-retrieval", None, 6),
        ("no-retrieval", "direct", 6),
        ("one-step", None, 6),
        ("one-step", "shallow", 6),
        ("one-step", "direct", 6),
    ]
    assert {row["ended"] for row in tables["scores"]} == {"6 answer"}
    once, shallow = tables["scores"][2], tables["scores"][3]
    assert 0 < shallow["paragraphs_collected"]["mean"] == 3 < once["paragraphs_collected"]["mean"]
    assert 0 < shallow["paragraph_recall"]["mean"] <= once["paragraph_recall"]["mean"]
    assert [row["steps"] for row in tables["costs"]] == [6, 6, 12, 12, 12]
    runs = last(cotrail("experiment", "show", "free", "--json"))["runs"]
    assert list(runs)[3] == "sample/scripted/one-step/shallow"
    again = last(cotrail("experiment", "run", str(home / "free.toml"), "--json"))
    assert (again["runs"], again["tables"]) == (5, done["tables"])


def test_a_paper_is_one_module(home: Path, cotrail: Cotrail) -> None:
    report = last(cotrail("experiment", "run", str(home / "ours.toml"), "--json"))
    assert (report["runs"], report["planned"]) == (2, 2)
    (table,) = report["tables"]
    assert [(row["values"]["label"], row["published"]) for row in table["rows"]] == [
        ("Search once", ""),
        ("Search once", "table 1"),
        ("By heart", ""),
        ("By heart", "table 1"),
    ]
    printed = " ".join(cotrail("experiment", "report", "ours").split())
    cotrail("experiment", "report", "ours", "--output", str(home / "report"))
    assert "Search once GPT-9 70.50 published, table 1" in printed
    page = (home / "report" / "report.html").read_text("utf-8")
    assert "protocol made-up" in page
    assert page.count('href="runs/one-step') >= 2
