"""A comparison whose runs are repeated: its runs, their seeds, and the table over questions and repeats."""

from typing import Any

import pytest
from msgspec.structs import replace

from cotrail.core.repeats import Repeat
from cotrail.evaluation.experiments.compare.experiment import ComparedCell, ComparedRun, CompareExperiment
from cotrail.evaluation.experiments.compare.paper import PAPER, report
from cotrail.evaluation.experiments.registry import experiment_of
from cotrail.evaluation.experiments.report_tables import Interval, ReportTable
from cotrail.evaluation.metrics.repeated_scores import clustered_mean
from cotrail.services.runs.requests import make_request
from tests.unit.test_compare_tables import run

FILE: dict[str, Any] = {
    "protocol": "compare",
    "name": "often",
    "models": ["m"],
    "systems": ["no-retrieval"],
    "seed": 7,
    "repeat": 3,
    "datasets": {"hotpotqa": {"questions": "q.json"}},
    "variations": [{"name": "seeded", "run": {"seed": 100}}],
}


def cells(described: dict[str, Any]) -> tuple[CompareExperiment, list[ComparedCell]]:
    experiment = experiment_of(described)
    assert isinstance(experiment, CompareExperiment)
    return experiment, [cell for stage in PAPER.stages(experiment) for cell in stage.cells]


def test_each_run_is_done_so_many_times_every_time_with_the_next_seed() -> None:
    experiment, runs = cells(FILE)
    requests = {cell.name: make_request(PAPER.request(experiment, cell)).seed for cell in runs}
    assert requests == {
        "hotpotqa/m/no-retrieval": 7,
        "hotpotqa/m/no-retrieval/repeat-2": 8,
        "hotpotqa/m/no-retrieval/repeat-3": 9,
        "hotpotqa/m/no-retrieval/seeded": 100,
        "hotpotqa/m/no-retrieval/seeded/repeat-2": 101,
        "hotpotqa/m/no-retrieval/seeded/repeat-3": 102,
    }
    assert PAPER.repeat(experiment, runs[4]) == Repeat(of="hotpotqa/m/no-retrieval/seeded", number=2, times=3)


def test_a_run_that_is_done_once_is_no_repeat() -> None:
    experiment, [only, _] = cells(FILE | {"repeat": 1})
    assert PAPER.repeat(experiment, only) is None
    assert PAPER.request(experiment, only)["seed"] == 7


def repeats(*marks: str) -> list[ComparedRun]:
    """Repeats of a run, whose questions are right (+) or wrong (-)."""
    made = [run("no-retrieval", right) for right in marks]
    return [
        replace(each, cell=replace(each.cell, repeat=number), asked=each.answered)
        for number, each in enumerate(made, start=1)
    ]


def tables(*runs: ComparedRun) -> dict[str, ReportTable]:
    return {table.name: table for table in report(runs).tables}


def test_the_table_has_the_clustered_mean_of_each_metric_and_how_far_repeats_differ() -> None:
    found = tables(*repeats("++--", "+---"), run("no-retrieval", "+-", dataset="musique"))
    rows = {row.values["metric"]: row for row in found["repeats"].rows}
    em = rows["Answer EM"]
    expected = clustered_mean([[1, 1], [1, 0], [0, 0], [0, 0]])
    assert expected is not None
    assert expected.interval is not None
    assert em.values["run"] == "hotpotqa/tiny/no-retrieval"
    assert (em.values["questions"], em.values["repeats"], em.values["mean"]) == (4, 2, 0.375)
    assert em.values["interval"] == Interval(low=expected.interval.low, high=expected.interval.high)
    assert em.values["deviation"] == pytest.approx(0.25 / 2**0.5)
    assert em.values["pass"] == 0.5
    assert rows["Answer F1"].values["pass"] is None
    assert em.runs["mean"] == ("hotpotqa/tiny/no-retrieval", "hotpotqa/tiny/no-retrieval/repeat-2")
    assert [row.values["repeat"] for row in found["scores"].rows] == [1, 2, 1]


def test_runs_that_are_done_once_have_no_such_table() -> None:
    found = tables(run("no-retrieval", "+-"))
    assert "repeats" not in found
    assert "repeat" not in {column.name for column in found["scores"].columns}


def test_published_tables_have_a_row_for_each_repeat() -> None:
    found = tables(*repeats("++--", "+---"))
    named = [row.values.get("as") for table in found.values() for row in table.rows if not row.published]
    assert "no-retrieval/repeat-2" in named
