import io
import math
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cotrail.cli.commands.experiment import print_report
from cotrail.evaluation.comparison.differences import anytime_interval, difference_interval
from cotrail.evaluation.experiments.costs import Work, cost
from cotrail.evaluation.experiments.ircot.cells import NAMES, CellResult, in_order, names_in, parameters
from cotrail.evaluation.experiments.ircot.paper import PAPER
from cotrail.evaluation.experiments.ircot.paper import report as ircot_report
from cotrail.evaluation.experiments.ircot.tables import build_tables, mean_score, question_means
from cotrail.evaluation.experiments.report_tables import (
    Column,
    EMAndF1,
    Interval,
    Mean,
    ReportTable,
    Share,
    TableRow,
    Unit,
    Value,
)
from cotrail.evaluation.metrics.confidence_intervals import confidence_sequence
from cotrail.services.results.reports.sheets import as_markdown, sheet, shown
from tests.cases import each_case
from tests.unit.made_results import ADOPTED, MADE, line, made


def table(results: Sequence[CellResult], name: str) -> ReportTable:
    found = {each.name: each for each in build_tables(results)}
    assert name in found, f"there are {sorted(found)}"
    return found[name]


def own(of: ReportTable) -> list[TableRow]:
    return [row for row in of.rows if not row.published]


def places(of: ReportTable) -> list[str]:
    return [column.title for column in of.columns if column.unit == "score"]


def mean_of(value: Value) -> float:
    assert isinstance(value, Mean)
    return value.mean


def test_nothing_comes_of_no_results() -> None:
    assert build_tables([]) == ()


def test_em_and_f1_are_those_of_the_dataset_and_of_its_bridge_questions() -> None:
    results = [made(line(), [1.0, 0.5, 0.0, 0.2], kinds=["bridge", "bridge", "comparison", "comparison"])]
    answers = table(results, "answers")
    (row,) = own(answers)
    bridge, whole = row.values["hotpotqa_bridge"], row.values["hotpotqa"]
    assert isinstance(bridge, EMAndF1)
    assert isinstance(whole, EMAndF1)
    means = [each and each.mean for each in (bridge.em, bridge.f1, whole.em, whole.f1)]
    assert means == [0.5, 0.75, 0.25, 0.425]
    assert places(answers) == ["HotpotQA bridge", "HotpotQA"]


def test_published_systems_stand_below_ones_own_where_they_have_a_score() -> None:
    answers = table([made(line(dataset="musique"), [0.5], kinds=["4hop"])], "answers")
    assert [column.name for column in answers.columns if column.unit == "score"] == ["musique"]
    assert [(row.values["system"], row.published) for row in answers.rows] == [
        ("ircot", ""),
        ("DecomP", "table 3 (Khot et al., 2023)"),
        ("ircot", "tables 1, 3"),
    ]
    assert answers.rows[-1].values["musique"] == EMAndF1(em=Mean(mean=0.265), f1=Mean(mean=0.365))


def test_f1_is_the_mean_over_the_demonstration_sets_with_their_sample_deviation() -> None:
    results = [
        made(line(), [0.4, 0.6], demonstration_set=1),
        made(line(), [0.6, 0.8], demonstration_set=2),
        made(line(), [0.8, 0.7], demonstration_set=3),
    ]
    readers = table(results, "readers")
    (row,) = own(readers)
    score = row.values["hotpotqa"]
    assert isinstance(score, Mean)
    assert score.mean == pytest.approx((0.5 + 0.7 + 0.75) / 3)
    assert score.deviation == pytest.approx(math.sqrt((0.15**2 + 0.05**2 + 0.1**2) / 2))
    assert score.sets == 3
    assert "± is the sample standard deviation between 3 demonstration sets." in readers.notes


def test_with_one_demonstration_set_there_is_no_deviation() -> None:
    readers = table([made(line(dataset="mine"), [0.5, 0.7])], "readers")
    assert sheet(readers).rows[0].cells[-1] == "60.0 (9.2-94.0)"
    assert readers.notes == ("In brackets: the 95 % confidence interval of a mean over these questions.",)


def test_ones_own_rows_stand_before_the_published_ones_of_the_same_system_and_reader() -> None:
    systems: list[str] = ["ircot", "no-retrieval"]
    readers = table([made(line(system), [0.5]) for system in systems], "readers")
    assert [(row.values["system"], row.values["model"], row.published) for row in readers.rows] == [
        ("no-retrieval", "tiny-1b", ""),
        ("no-retrieval", "Flan-T5-XXL", "table 4"),
        ("no-retrieval", "GPT3", "table 4"),
        ("ircot", "tiny-1b", ""),
        ("ircot", "Flan-T5-XXL", "table 4"),
        ("ircot", "GPT3", "table 4"),
    ]
    assert {row.values["reader"] for row in readers.rows} == {"direct"}


def test_a_dataset_of_ones_own_stands_last_under_its_own_name_with_nothing_published() -> None:
    readers = table([made(line(dataset=name), [0.5]) for name in ("mine", "musique", "hotpotqa")], "readers")
    assert places(readers) == ["HotpotQA", "MuSiQue", "mine"]
    assert {row.values["mine"] for row in readers.rows if row.published} == {None}


def test_ircot_with_and_without_a_reader_is_compared_where_there_is_both() -> None:
    with_reader, without = made(line(), [0.6]), made(line(reader="none"), [0.4])
    assert "without_reader" not in {each.name for each in build_tables([with_reader])}
    compared = table([with_reader, without], "without_reader")
    assert [row.values["reader"] for row in own(table([with_reader, without], "readers"))] == ["direct"]
    assert [(row.values["reader"], mean_of(row.values["hotpotqa"])) for row in own(compared)] == [
        ("direct", 0.6),
        ("none", 0.4),
    ]
    assert [row.published for row in compared.rows[2:]] == ["table 6"] * 4


def test_recall_is_that_of_the_retrieval_runs() -> None:
    results = [
        made(line("one-step", goal="retrieval"), [0.5, 1.0]),
        made(line("ircot", goal="retrieval"), [1.0, 1.0]),
        made(line("ircot"), [0.0, 0.0]),
    ]
    recall = table(results, "recall")
    assert [(row.values["system"], mean_of(row.values["hotpotqa"])) for row in recall.rows] == [
        ("one-step", 0.75),
        ("ircot", 1.0),
    ]


def test_out_of_distribution_is_named_as_in_the_paper_and_kept_apart() -> None:
    results = [
        made(line(dataset="2wikimultihopqa", demonstrations="hotpotqa"), [0.3]),
        made(line(dataset="hotpotqa", demonstrations="2wikimultihopqa"), [0.2]),
        made(line(dataset="hotpotqa"), [0.9]),
        made(line(goal="retrieval", dataset="musique", demonstrations="hotpotqa"), [0.4]),
    ]
    answers, recall = table(results, "transferred_answers"), table(results, "transferred_recall")
    assert places(answers) == ["HQ→2W", "2W→HQ"]
    assert mean_of(answers.rows[0].values["hotpotqa→2wikimultihopqa"]) == 0.3
    assert places(recall) == ["HQ→MQ"]
    assert places(table(results, "readers")) == ["HotpotQA"]
    assert "HQ is HotpotQA, MQ is MuSiQue" in recall.notes[0]


def test_systems_are_compared_on_the_questions_that_both_have() -> None:
    results = [
        made(line(), {"a": 0.8, "b": 0.4, "only-here": 0.0}, demonstration_set=1),
        made(line(), {"a": 0.6, "b": 0.4, "only-here": 0.0}, demonstration_set=2),
        made(line("one-step"), {"b": 0.1, "a": 0.5, "only-there": 1.0}),
    ]
    compared = table(results, "differences")
    (row,) = own(compared)
    assert row.values["difference"] == pytest.approx(((0.7 - 0.5) + (0.4 - 0.1)) / 2)
    assert row.values["questions"] == 2
    assert (row.values["system"], row.values["against"]) == ("ircot", "one-step")
    interval = row.values["interval"]
    expected = difference_interval([0.7 - 0.5, 0.4 - 0.1], 1.0)
    assert expected is not None
    assert interval == Interval(low=expected.low, high=expected.high)


def test_the_differences_that_the_paper_states_stand_beside_ones_own() -> None:
    results = [made(line(system, goal="retrieval"), [0.5, 0.6]) for system in ("one-step", "ircot")]
    compared = table(results, "differences")
    stated = [(row.values["model"], row.values["difference"]) for row in compared.rows if row.published]
    assert stated == [("Flan-T5-XXL", 0.079), ("GPT3", 0.113)]


def test_runs_that_a_budget_ended_are_compared_at_every_stop() -> None:
    """One of two runs was asked 8 of 20 questions: these are compared, and no test is made of them."""
    whole, cut = made(line("one-step"), [0.0, 1.0] * 10), made(line("ircot"), [1.0] * 8, unasked=12)
    compared = table([whole, cut], "differences")
    [row] = own(compared)
    assert (row.values["questions"], row.values["difference"], row.values.get("p_value")) == (8, 0.5, None)
    at_every_stop = anytime_interval([1.0, 0.0] * 4, 1.0)
    assert at_every_stop is not None
    assert row.values["interval"] == Interval(low=at_every_stop.low, high=at_every_stop.high)
    assert compared.notes[-1].startswith("Without p are runs that go on or were ended early")
    mean = mean_score([cut], "answer_f1")
    alone = confidence_sequence([1.0] * 8)
    assert mean is not None
    assert alone is not None
    assert mean.interval == Interval(low=alone.low, high=alone.high)
    [row] = own(table([whole, made(line("ircot"), [1.0] * 20)], "differences"))
    assert row.values["p_value"] is not None


def test_one_step_is_compared_with_none_and_readers_are_not_mixed() -> None:
    results = [
        made(line("no-retrieval", reader="cot"), [0.1]),
        made(line("one-step", reader="cot"), [0.4]),
        made(line("ircot", reader="direct"), [0.9]),
    ]
    compared = own(table(results, "differences"))
    assert [(row.values["system"], row.values["against"]) for row in compared] == [("one-step", "no-retrieval")]


def test_the_chosen_search_run_is_the_one_that_was_tested() -> None:
    searched = [
        made(line(goal="retrieval"), [score], stage="search", chosen=(count, 1))
        for count, score in ((2, 0.5), (4, 0.9), (6, 0.7))
    ]
    undecided = table(searched, "search")
    assert not any(row.chosen for row in undecided.rows)
    assert undecided.notes
    decided = table([*searched, made(line(goal="retrieval"), [0.8], chosen=(4, 1))], "search")
    assert [row.values["retrieval_count"] for row in decided.rows if row.chosen] == [4]
    assert [mean_of(row.values["paragraph_recall"]) for row in decided.rows] == [0.5, 0.9, 0.7]
    assert decided.notes == ("In brackets: the 95 % confidence interval of a mean over these questions.",)
    assert "answer_f1" not in {column.name for column in decided.columns}


def test_search_runs_are_in_no_other_result() -> None:
    results = [made(line(), [0.1], stage="search", chosen=(2, 1)), made(line(), [0.9])]
    assert mean_of(table(results, "readers").rows[0].values["hotpotqa"]) == 0.9


def test_costs_are_those_of_an_answered_question() -> None:
    further = cost(made=MADE, adopted=Work(), lost={}, lost_seconds=0.0)
    results = [
        made(line(), [0.5, 0.5], demonstration_set=1),
        made(line(), [0.5, 0.5], demonstration_set=2, cost=further),
    ]
    (row,) = table(results, "costs").rows
    assert row.values["model_calls"] == pytest.approx((8 + 5) / 4)
    assert row.values["prompt_tokens"] == (4000 + 2500) / 4
    assert row.values["seconds"] == pytest.approx((6 + 5) / 4)
    assert (row.values["steps"], row.values["adopted"]) == (12 + 7, 5)


def test_a_line_without_any_answer_has_no_cost_of_a_question() -> None:
    (row,) = table([made(line(), [0.0], finished=0)], "costs").rows
    assert "model_calls" not in row.values
    assert row.values["steps"] == 12


def test_totals_are_by_stage() -> None:
    results = [made(line(), [0.5], stage="search", chosen=(k, 1)) for k in (2, 4)] + [made(line(), [0.5])]
    totals = table(results, "totals")
    columns = ("stage", "runs", "work", "model_calls", "searches", "prompt_tokens")
    assert [tuple(row.values[name] for name in columns) for row in totals.rows] == [
        ("search", 2, "asked for", 16, 8, 8000),
        ("search", 2, "adopted", 6, 4, 3000),
        ("search", 2, "made", 10, 4, 5000),
        ("test", 1, "asked for", 8, 4, 4000),
        ("test", 1, "adopted", 3, 2, 1500),
        ("test", 1, "made", 5, 2, 2500),
    ]


def test_executions_without_a_result_stand_beside_what_was_made() -> None:
    lost = cost(made=MADE, adopted=ADOPTED, lost={"expired": 2, "retried": 1}, lost_seconds=7.5)
    totals = table([made(line(), [0.5], cost=lost), made(line("one-step"), [0.5])], "totals")
    assert [row.values["work"] for row in totals.rows] == ["asked for", "adopted", "made", "without a result"]
    assert (totals.rows[-1].values["executions"], totals.rows[-1].values["seconds"]) == (3, 7.5)
    assert totals.rows[-2].values["model_calls"] == 2 * MADE.model_calls
    assert any("2 expired, 1 retried" in note for note in totals.notes)


def test_runs_with_unanswered_questions_come_first_and_their_means_are_marked() -> None:
    results = [made(line(), [0.5, 0.0], finished=1), made(line("one-step"), [0.4, 0.4])]
    first = build_tables(results)[0]
    assert first.name == "unanswered"
    assert [(row.values["cell"], row.values["finished"], row.values["questions"]) for row in first.rows] == [
        ("test/qa/hotpotqa/tiny-1b/ircot/direct/set1/K4/M1", 1, 2)
    ]
    readers = table(results, "readers")
    cells = {line.cells[0]: line.cells[-1] for line in sheet(readers).rows if not line.published}
    assert cells == {"IRCoT": "25.0* (0.6-89.0)", "OneR": "40.0 (6.3-90.5)"}
    assert any(note.startswith("*") for note in readers.notes)
    assert any("no answer" in note for note in table(results, "differences").notes)


def test_untrue_chains_are_counted_of_the_annotated() -> None:
    marks = {"q0": True, "q1": False}
    results = [
        made(line("one-step"), [0.5, 0.5], factual_errors=marks),
        made(line("one-step"), [0.5, 0.5], demonstration_set=2, factual_errors={"q1": True}),
        made(line(), [0.5, 0.5]),
    ]
    errors = table(results, "errors")
    assert [(row.values["system"], row.values["hotpotqa"]) for row in errors.rows] == [
        ("one-step", Share(count=2, of=3))
    ]
    assert "50 % fewer on HotpotQA" in errors.notes[0]


def test_json_has_the_numbers_of_the_tables_unrounded() -> None:
    results = [made(line(), [1 / 3, 1.0], demonstration_set=i) for i in (1, 2)]
    decoded = msgspec.json.decode(msgspec.json.encode({"tables": ircot_report(results).tables}))
    (readers,) = (each for each in decoded["tables"] if each["name"] == "readers")
    assert readers["rows"][0]["values"]["hotpotqa"] == {
        "mean": pytest.approx(2 / 3),
        "deviation": 0.0,
        "sets": 2,
        "answered": True,
        "interval": {"low": pytest.approx(0.0892, abs=1e-4), "high": pytest.approx(0.9916, abs=1e-4)},
    }
    assert readers["rows"][1]["published"] == "table 4"


@each_case(
    ("value", "unit", "text"),
    [
        (None, "score", "-"),
        (Mean(mean=0.59123, deviation=0.00911, sets=3), "score", "59.1 ± 0.9"),
        (Mean(mean=0.59123, deviation=0.00911, sets=3), "mean", "59.1"),
        (Mean(mean=0.5, deviation=0.0, sets=2, answered=False), "score", "50.0* ± 0.0"),
        (Mean(mean=0.59123, interval=Interval(low=0.52, high=0.66149)), "score", "59.1 (52.0-66.1)"),
        (Mean(mean=0.59123, interval=Interval(low=0.52, high=0.66149)), "mean", "59.1 (52.0-66.1)"),
        (Mean(mean=0.59123, deviation=0.00911, interval=Interval(low=0.52, high=0.66)), "score", "59.1 ± 0.9"),
        (EMAndF1(em=None, f1=Mean(mean=0.5, interval=Interval(low=0.4, high=0.6))), "score", "- | 50.0"),
        (Mean(mean=9.25, sets=1), "decimal", "9.2"),
        (EMAndF1(em=Mean(mean=0.493), f1=Mean(mean=0.607)), "score", "49.3 | 60.7"),
        (EMAndF1(em=None, f1=Mean(mean=0.5)), "score", "- | 50.0"),
        (Share(count=12, of=40), "score", "12 of 40"),
        (Interval(low=-0.012, high=0.034), "gain", "-1.2 to +3.4"),
        (0.079, "gain", "+7.9"),
        (0.0001, "probability", "< 0.001"),
        (0.0426, "probability", "0.043"),
        (5200.4, "count", "5,200"),
        (14400.0, "decimal", "14,400"),
        (9.3, "seconds", "9.3 s"),
        ("one-step", "system", "OneR"),
        ("one-step", "text", "one-step"),
        ("DecomP", "system", "DecomP"),
        ("", "reader", "-"),
    ],
)
def test_values_are_shown_as_the_paper_shows_them(value: Value, unit: Unit, text: str) -> None:
    assert shown(value, unit, {"one-step": "OneR"}) == text


def test_names_are_shown_as_the_paper_has_them() -> None:
    values = {"one-step": "system", "DecomP": "system", "none": "reader", "cot": "goal", "answer_f1": "metric"}
    columns = [Column(value, value, unit) for value, unit in (values | {"hotpotqa→musique": "place"}).items()]  # type: ignore[arg-type]
    row = TableRow(values={column.name: column.name for column in columns})
    assert names_in(ReportTable(name="t", title="T", columns=tuple(columns), rows=(row,))) == {
        "one-step": "OneR",
        "none": "no reader",
        "answer_f1": "Answer F1",
        "hotpotqa→musique": "HQ→MQ",
    }


def test_markdown_has_as_many_cells_in_every_row_and_takes_no_mark_for_its_own() -> None:
    results = [made(line(model="my_model*"), [0.5, 0.0], finished=1)]
    text = as_markdown(sheet(table(results, "answers")))
    rows = [row for row in text.splitlines() if row.startswith("|")]
    assert {len(row.replace(r"\|", "").split("|")) for row in rows} == {2 + 5 + 1}
    assert r"my\_model\*" in rows[2]
    assert r"0.0\* \| 25.0\*" in rows[2]


def test_where_the_output_is_no_terminal_no_number_is_cut() -> None:
    results = [made(line(dataset=name, model="a-model-with-quite-a-long-name"), [0.5]) for name in NAMES.datasets]
    stream = io.StringIO()
    report = ircot_report(results)
    print_report(report.summary, tuple(map(sheet, report.tables)), Console(file=stream, width=60, markup=False))
    rows = [row for row in stream.getvalue().splitlines() if row.startswith("IRCoT   direct  a-model")]
    assert rows
    assert rows[0].split()[-8:] == ["50.0", "(1.3-98.8)"] * 4


def test_without_results_it_is_said() -> None:
    stream = io.StringIO()
    print_report(PAPER.reported([]).summary, (), Console(file=stream))
    assert "No run" in stream.getvalue()


@each_case(
    ("model", "billions"),
    [
        ("smollm2-135m", 0.135),
        ("qwen2.5-7b-instruct-q4_k_m", 7),
        ("Qwen2.5-1.5B-Instruct", 1.5),
        ("llama3.2:1b", 1),
        ("google/flan-t5-xxl", 11),
        ("flan_t5_base", 0.2),
        ("gpt3", 175),
        ("phi-3-mini-4k", None),
        ("mine", None),
        ("model-8bit", None),
    ],
)
def test_a_models_name_tells_its_size(model: str, billions: float | None) -> None:
    assert parameters(model) == billions


@given(st.lists(st.sampled_from([*NAMES.datasets, *NAMES.subsets, "mine", "other", "hotpotqa→musique"])))
def test_places_are_put_in_one_order(names: list[str]) -> None:
    ordered = in_order(names)
    assert sorted(ordered) == sorted(set(names))
    assert in_order(ordered) == ordered


@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=1, max_size=4))
def test_a_mean_lies_between_the_runs_and_equals_that_of_the_questions(values: list[list[float]]) -> None:
    runs = [made(line(), scores, demonstration_set=i) for i, scores in enumerate(values, start=1)]
    score = mean_score(runs, "answer_f1")
    assert score is not None
    means = [sum(scores) / 2 for scores in values]
    assert min(means) - 1e-9 <= score.mean <= max(means) + 1e-9
    by_question = question_means(runs, "answer_f1")
    assert score.mean == pytest.approx(sum(by_question.values()) / 2)
    assert (score.deviation is None) == (len(values) == 1)
