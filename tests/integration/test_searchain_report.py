"""What users see of trees of reasoning, of runs that are put into the store as if they had ended."""

import json
import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Engine

from cotrail.core.questions import Question
from cotrail.models.commands.submission import open_experiment
from tests.integration.conftest import Cotrail
from tests.integration.ended import end_run
from tests.unit.made_trees import mark, tree

ASKED = [
    Question(id=f"q{number}", text="Who built it?", answers=("Ada",), kinds={"hops": "2hop"}) for number in range(2)
]
WRITTEN = tree("mc- df", path=(0, 1, 4), final="Ada [1] built it [3].", marks=[mark("Ada", 0), mark("built it", 4)])
CELLS = ("musique/tiny/searchain", "musique/tiny/searchain/without-retrieval")
EXPERIMENT = {
    "protocol": "searchain",
    "name": "small",
    "models": ["tiny"],
    "datasets": {"musique": {"questions": "dev.jsonl", "corpus": "wikipedia"}},
}


def test_a_trace_draws_the_tree_and_has_it_as_json(engine: Engine, cotrail: Cotrail) -> None:
    run = end_run(engine, ASKED, [WRITTEN, None], system="searchain")
    said = cotrail("trace", run, "q0")
    assert said.exit_code == 0, said.output
    lines = [line.strip(" │├└─") for line in said.stdout.splitlines()]
    assert lines[lines.index("question") :][1:7] == [
        "round 1",
        "[1] Query 0? → answer 0",
        "model · the reader: extracted 0 (0.00) · in d0",
        "[2] Query 1? → extracted 1",
        "corrected · the model: answer 1 · the reader: extracted 1 (1.00) · in d1",
        'round 2  feedback: According to the Reference, the answer for "Query 1?" should be "extracted 1". You can '
        "change your answer",
    ]
    assert "marks          Ada → [1] d0" in said.stdout
    assert json.loads(cotrail("trace", run, "q0", "--json").stdout)["details"]["path"] == [0, 1, 4]
    assert "final content" not in cotrail("trace", run, "q1").stdout


def test_a_final_content_is_right_where_the_answer_stands_in_it(
    engine: Engine, cotrail: Cotrail, tmp_path: Path
) -> None:
    asked = [replace(each, answers=("ye",)) for each in ASKED]
    run = end_run(engine, asked, [WRITTEN, None], system="searchain")
    assert "scores  EM 0.0 %, F1 0.0 %, cover EM 100.0 %, paragraph recall -" in cotrail("trace", run, "q0").stdout
    page = tmp_path / "page.html"
    assert cotrail("report", run, "--html", page).exit_code == 0
    assert page.read_text().count('<tr class="q right">') == 1
    exported = [json.loads(line) for line in cotrail("export", run).stdout.splitlines()]
    assert exported[0]["details"]["path"] == [0, 1, 4]
    assert exported[1]["details"] is None


def test_exact_match_and_f1_are_of_the_span_that_an_answer_states(
    engine: Engine, cotrail: Cotrail, tmp_path: Path
) -> None:
    written = replace(WRITTEN, stated="Ada")
    run = end_run(engine, ASKED, [written, WRITTEN], answer="She built it. So the answer is Ada.", system="searchain")
    assert "scores  EM 100.0 %, F1 100.0 %, paragraph recall -" in cotrail("trace", run, "q0").stdout
    assert "scores  EM 0.0 %, F1 25.0 %, cover EM 100.0 %, paragraph recall -" in cotrail("trace", run, "q1").stdout
    metrics = json.loads(cotrail("score", run, "--json").stdout)["metrics"]
    assert (metrics["answer_em"], metrics["answer_f1"], metrics["cover_em"]) == (0.5, 0.625, 1)
    page = tmp_path / "page.html"
    assert cotrail("report", run, "--html", page).exit_code == 0
    assert "EM 100.0\u00a0% · cover EM 100.0\u00a0% · F1 100.0\u00a0%" in page.read_text()
    predicted = [json.loads(line)["predicted_answer"] for line in _exported(cotrail, run)]
    assert predicted == ["Ada", "She built it. So the answer is Ada."]


def _exported(cotrail: Cotrail, run: str) -> list[str]:
    return cotrail("export", run, "--format", "musique").stdout.splitlines()


def test_a_page_draws_the_tree_and_what_a_model_wrote_is_only_text(
    engine: Engine, cotrail: Cotrail, tmp_path: Path
) -> None:
    node = replace(WRITTEN.nodes[1], answer="<script>alert(1)</script>", extracted="</ul>")
    hostile = replace(WRITTEN, nodes=(WRITTEN.nodes[0], node, *WRITTEN.nodes[2:]), final="<b>Ada</b> [1]")
    run = end_run(engine, ASKED, [hostile, None], system="searchain")
    page = tmp_path / "page.html"
    assert cotrail("report", run, "--html", page).exit_code == 0
    html = page.read_text()
    assert html.count("<h3>Tree of reasoning</h3>") == 1
    assert '<li class="node corrected"><bdi>Query 1?</bdi> → <b><bdi>&lt;/ul&gt;</bdi></b>' in html
    theirs = "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>"
    assert f'<span class="source">corrected</span> · the model: {theirs} · the reader: <bdi>&lt;/ul&gt;</bdi>' in html
    told = "According to the Reference, the answer for &#34;Query 1?&#34;"
    assert f'<span class="note">round 2, told: <bdi>{told}' in html
    assert '<span class="source">completed</span> · unsolved · the reader: <bdi>extracted 4</bdi> (4.00)' in html
    assert '<span class="source">not looked at</span>' in html
    assert "&lt;b&gt;Ada&lt;/b&gt; [1]" in html
    assert "<script>alert" not in html
    assert html.count("<ul") == html.count("</ul>")
    assert html.count("<ol") == html.count("</ol>")


def test_an_experiment_s_report_has_the_tables_of_its_trees(engine: Engine, cotrail: Cotrail, tmp_path: Path) -> None:
    open_experiment(engine, "small", {"experiment": EXPERIMENT, "models": {}})
    alone = replace(tree("----"), final="Eve built it. So the answer is Eve.")
    ended = ((WRITTEN, tree("m")), "Ada built it."), ((alone, None), alone.final)
    for cell, (trees, answer) in zip(CELLS, ended, strict=True):
        where = {"run_id": cell.replace("/", "-"), "experiment": "small", "cell": cell}
        end_run(engine, ASKED, trees, answer=answer, system="searchain", **where)
    said = cotrail("experiment", "report", "small", "--output", tmp_path)
    assert said.exit_code == 0, said.output
    own = {each["name"]: [row["values"] for row in each["rows"] if not row["published"]] for each in _tables(cotrail)}
    assert [row["score"] for row in own["runs"]] == [1.0, 0.0]
    assert own["performance"][1] == {"label": "SearChain", "model": "tiny", "musique": 1.0}
    assert own["sources"][0]["completed"] == 1 / 4
    assert own["effect"][0]["helped_with"] == 1
    assert [row["2"] for row in own["steps"]] == [4]
    assert own["marks"][0]["named"] == 2 / 4
    html = (tmp_path / "report.html").read_text()
    assert "Sources of knowledge (table 2)" in html
    pages = {f"runs/{cell.replace('/', '-')}.html" for cell in CELLS}
    assert pages == set(re.findall(r'href="(runs/[^"]+)"', html))
    assert all("<h3>Tree of reasoning</h3>" in (tmp_path / page).read_text() for page in pages)
    assert f"and 2 pages in {tmp_path / 'runs'}" in said.stderr.replace("\n", "")
    again = cotrail("experiment", "report", "small", "--output", tmp_path / "alone", "--no-runs")
    assert again.exit_code == 0, again.output
    assert "runs/" not in (tmp_path / "alone" / "report.html").read_text()
    assert "cover-EM" in (tmp_path / "report.md").read_text()


def _tables(cotrail: Cotrail) -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = json.loads(cotrail("experiment", "report", "small", "--json").stdout)["tables"]
    return tables
