"""A metric that is one record and a line of the registry stands in scores, their JSON, an export and the report."""

import json
from io import StringIO

import msgspec
import pytest
from rich.console import Console

from cotrail.cli.terminal.verdict_tables import print_scores
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.services.results.export_formats import lines
from cotrail.services.results.exporting import Source
from cotrail.services.results.reports.run_report import run_page
from cotrail.services.results.scoring import RunScores, kind_tables, run_scores
from cotrail.services.runs.scores import kinded_scores
from tests.extensions.brevity import BREVITY
from tests.unit.made_results import COST
from tests.unit.made_runs import progress, question, record

ASKED = (
    question("q1", answer="yes", kinds={"level": "easy"}),
    question("q2", answer="yes they do", kinds={"level": "hard"}),
    question("q3", answer=None, status="open", kinds={"level": "hard"}),
)


@pytest.fixture(autouse=True)
def _brevity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "brevity", BREVITY)


def scores() -> RunScores:
    run = record()
    return run_scores(
        run, progress(ASKED), [kinded_scores(run, each) for each in ASKED], [each.status for each in ASKED]
    )


def test_it_stands_in_the_terminal_s_table_and_in_json() -> None:
    screen = Console(file=StringIO(), width=200)
    print_scores(screen, scores(), every=True)
    assert isinstance(screen.file, StringIO)
    row = next(line for line in screen.file.getvalue().splitlines() if "brevity" in line)
    assert "33.3 %" in row
    assert "a single word" in row
    written = json.loads(msgspec.json.encode(scores()))
    assert written["metrics"]["brevity"] == pytest.approx(1 / 3)
    assert written["intervals"]["brevity"]["method"] == "clopper-pearson"


def test_an_unfinished_question_scores_nothing_by_it_and_one_without_answers_has_it_not() -> None:
    rows = [
        json.loads(line) for line in lines(Source(record=record(), questions=[*ASKED, question(answers=())]), "jsonl")
    ]
    assert [row["brevity"] for row in rows] == [1, 0, 0, None]


def test_as_a_main_metric_it_stands_in_the_report_and_in_tables_by_kind() -> None:
    html = run_page(record(), progress(ASKED), COST, ASKED).html
    assert html.index("Brevity") < html.index("Answer EM")
    assert BREVITY.meaning in html
    [table] = kind_tables(scores())
    assert table.metrics == ("brevity", "answer_em", "answer_f1")
    assert [row.means[0][0] for row in table.rows] == [0, 1]
