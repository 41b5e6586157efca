"""The tables of a comparison for made-up runs, and the published figures that stand in them."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.common.structs import merged
from cotrail.evaluation.comparison.differences import Reach
from cotrail.evaluation.experiments.compare.experiment import ComparedCell, ComparedRun, read_run
from cotrail.evaluation.experiments.compare.paper import PAPER, own_figures, published_tables, report
from cotrail.evaluation.experiments.costs import Cost, RecordedQuestion, RecordedRun, Work
from cotrail.evaluation.experiments.ircot.cells import LAYOUTS, ircot, printed_means
from cotrail.evaluation.experiments.report_tables import Interval, Mean, ReportTable, TableRow
from cotrail.evaluation.experiments.sources import (
    Method,
    PublishedRow,
    PublishedTable,
    Source,
    fact,
    filed_sources,
    source,
    table_rows,
)
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.services.results.reports.sheets import sheet
from cotrail.systems.registry import SYSTEMS, find_system
from tests.cases import each_case

COST = Cost(asked=Work(steps=3), adopted=Work(), made=Work(steps=3), limited=0, lost={}, lost_seconds=0.0)
SOURCES = (ircot(), *filed_sources())
TABLES = [(source_, table) for source_ in SOURCES for table in source_.tables]


def run(
    system: str,
    right: str = "",
    *,
    dataset: str = "hotpotqa",
    corpus: str | None = None,
    named: Mapping[str, str] | None = None,
    **settings: Any,
) -> ComparedRun:
    """A run whose questions are right (+) or wrong (-) by every metric, or have no answer (0)."""
    scores = {metric: [float(each == "+") for each in right] for metric in ("answer_em", "answer_f1", "cover_em")}
    means = {metric: sum(values) / len(values) if values else None for metric, values in scores.items()}
    defaults = msgspec.to_builtins(find_system(system).settings()) if system in NAMES else {}
    cell: dict[str, Any] = {"dataset": dataset, "model": "tiny", "method": system, **(named or {})}
    return ComparedRun(
        cell=ComparedCell(**cell),
        system=system,
        settings=merged(defaults, settings),
        dataset=dataset,
        corpus=corpus,
        reach=Reach(ended={str(number): True for number in range(len(right))}),
        answered={
            str(number): {metric: values[number] for metric, values in scores.items()}
            for number, each in enumerate(right)
            if each != "0"
        },
        scores=means,
        cost=COST,
        ends={"answer": 2, "limit: sentences": 1},
    )


NAMES = {spec.name for spec in SYSTEMS}


def tables(*runs: ComparedRun) -> dict[str, ReportTable]:
    return {table.name: table for table in report(runs).tables}


def rows(table: ReportTable, label: str) -> list[TableRow]:
    return [row for row in table.rows if row.values["label"] == label]


def test_without_runs_there_is_nothing_to_show() -> None:
    assert PAPER.reported([]).tables == ()


def test_scores_have_what_a_run_is_and_what_ended_its_questions() -> None:
    (row,) = tables(run("one-step", "++-0", corpus="wiki", retrieval={"retrieval_count": 7}))["scores"].rows
    assert row.values["run"] == "hotpotqa/tiny/one-step"
    assert (row.values["corpus"], row.values["k"], row.values["ended"]) == ("wiki", 7, "2 answer, 1 limit: sentences")
    assert (row.values["questions"], row.values["answered"], row.values["answer_em"]) == (4, 3, Mean(mean=0.5))


def test_a_run_is_read_with_what_its_tables_need() -> None:
    right, wrong = dict.fromkeys(METRICS, 1.0), dict.fromkeys(METRICS, 0.0)
    questions = (
        RecordedQuestion(key="a", text="?", answers=("x",), answer="x", kinds={}, scores=right),
        RecordedQuestion(key="b", text="?", answers=("x",), answer=None, kinds={}, scores=wrong),
        RecordedQuestion(
            key="c", text="?", answers=("x",), answer=None, kinds={}, scores=wrong, ended=False, asked=False
        ),
    )
    recorded = RecordedRun(
        id="r",
        system="searchain",
        settings=find_system("searchain").settings(),
        dataset="hotpotqa",
        model="tiny",
        corpus="wiki",
        questions=iter(questions),
        calls=lambda _: (),
        annotations=(),
        finished=1,
        cost=COST,
        ends={"answer": 1},
    )
    result = read_run(ComparedCell(dataset="mine", model="tiny", method="chains"), recorded)
    assert (result.system, result.dataset, result.questions, result.is_answered) == ("searchain", "hotpotqa", 3, False)
    assert (result.unasked, result.reach.ended, result.is_over) == (1, {"a": True, "b": True, "c": False}, True)
    assert result.scores["answer_em"] == 0.5
    assert result.answered == {"a": right}
    interval = result.intervals["answer_em"]
    assert interval is not None
    assert interval.method == "empirical-bernstein"
    (row,) = tables(result)["scores"].rows
    assert row.values["answer_em"] == Mean(mean=0.5, interval=Interval(low=interval.low, high=interval.high))
    assert result.settings["retrieve"] is True
    assert result.retrieval_count is None


@each_case(
    ("system", "settings", "count"),
    [("one-step", {"retrieval": {"retrieval_count": 3}}, 3), ("search-r1", {"search": {"count": 2}}, 2)],
)
def test_the_paragraphs_a_search_are_those_of_the_settings(system: str, settings: dict[str, Any], count: int) -> None:
    assert run(system, "+", corpus="wiki", **settings).retrieval_count == count
    assert run(system, "+", **settings).retrieval_count is None


def test_a_table_that_no_run_can_fill_is_left_out() -> None:
    assert list(published_tables([run("search-r1", "+", dataset="jsonl")])) == []
    assert list(published_tables([run("few-shot", "+")])) == []
    assert [table.name for table in published_tables([run("few-shot", "+", dataset="strategyqa")])] == [
        "rethinking-methods"
    ]


def test_own_runs_stand_before_the_published_rows_of_their_method() -> None:
    table = tables(run("searchain", "+-", corpus="wiki"), run("searchain", "+++-", retrieve=False))[
        "searchain-performance"
    ]
    assert len(table.rows) == 2 + 20
    own, theirs = rows(table, "SearChain")
    assert (own.values["hotpotqa"], own.published, own.runs) == (0.5, "", {"hotpotqa": ("hotpotqa/tiny/searchain",)})
    assert (theirs.values["hotpotqa"], theirs.published) == (0.5691, "table 1")
    without, published = rows(table, "SearChain w/o IR")
    assert (without.values["hotpotqa"], published.values["hotpotqa"]) == (0.75, 0.3836)
    assert "DSP" in {row.values["label"] for row in table.rows}


def test_each_row_says_its_model_corpus_count_metric_and_questions() -> None:
    counted: dict[str, Any] = {"retrieval": {"retrieval_count": 4}, "reading": {"reader": "direct"}}
    table = tables(
        run("one-step", "+-", corpus="wiki", **counted),
        run("one-step", "+--", corpus="news", dataset="musique", **counted),
    )["search-r1-agents"]
    own, theirs = (row.values for row in rows(table, "RAG"))
    facts = ("model", "hotpotqa", "musique", "corpus", "k", "metric", "questions")
    assert [own[name] for name in facts] == [
        *("tiny", 0.5, pytest.approx(1 / 3)),
        *("HotpotQA: wiki; MuSiQue: news", "4", "Answer EM", "HotpotQA: 2; MuSiQue: 3"),
    ]
    assert [theirs[name] for name in facts] == [
        *("Qwen2.5-7B", 0.299, 0.058, "wiki-18, 100 words a passage (E5-base-v2)", "3", "Answer EM", None)
    ]
    assert "2wikimultihopqa" not in own
    assert [column.title for column in table.columns][:4] == ["Method", "Model", "System", "HotpotQA"]
    assert any("Published: Search-R1: Jin et al., 2025" in note for note in table.notes)
    printed = [(*row.cells, row.remark) for row in sheet(table).rows if row.cells[0] == "RAG"]
    assert printed[1][-1] == "published, table 2"


def test_systems_retrievers_and_variations_have_rows_of_their_own_and_datasets_columns() -> None:
    as_is = run("search-r1", "+-", corpus="a", named={"retriever": "bm25"})
    varied = run("search-r1", "++", corpus="b", named={"retriever": "dense", "variation": "short"})
    again = run("search-r1", "+---", corpus="b", named={"dataset": "part", "retriever": "dense"})
    found = rows(tables(as_is, varied, again)["search-r1-agents"], "Search-R1")
    own = [(row.values["as"], row.values["questions of"], row.values["hotpotqa"]) for row in found if not row.published]
    assert own == [
        ("search-r1/bm25", None, 0.5),
        ("search-r1/dense/short", None, 1.0),
        ("search-r1/dense", "part", 0.25),
    ]
    assert len(found) == 3 + 2


@each_case(
    ("system", "settings", "label"),
    [
        ("self-ask", {"retrieve": False, "rounds": 5}, "Self-Ask w/o IR"),
        ("self-ask", {"retrieve": True}, "Self-Ask"),
        ("least-to-most", {"retrieve": False}, "Least-to-Most"),
        ("plan-and-solve", {"retrieve": False}, "Plan-and-Solve"),
        ("plan-and-solve", {"retrieve": True}, "Plan-and-Solve w/ IR"),
        ("react-self-consistency", {}, "ReAct → CoT-SC"),
        ("vote", {"of": "chain-of-thought"}, "CoT-SC"),
        ("searchain", {"verify": False}, "SearChain w/o Verification"),
        ("searchain", {"complete": False}, "SearChain w/o Completion"),
        ("searchain", {"verify": False, "complete": False}, None),
        ("vote", {"of": "self-ask"}, None),
        ("least-to-most", {"retrieve": True}, None),
    ],
)
def test_methods_are_systems_with_the_settings_that_matter(
    system: str, settings: dict[str, Any], label: str | None
) -> None:
    figures = own_figures(source("searchain").table("performance"), [run(system, "+", **settings)])
    assert [figure.label for figure in figures] == ([label] if label else [])


def test_retrieval_misleads_where_right_answers_become_wrong() -> None:
    alone, both = run("searchain", "+++-0", retrieve=False), run("searchain", "+--+-", corpus="wiki")
    table = tables(alone, both)["searchain-misled"]
    own, theirs = rows(table, "SearChain")
    assert own.values["hotpotqa"] == pytest.approx(2 / 3)
    assert own.values["questions"] == "3 right of 4"
    assert own.values["without"] == "hotpotqa/tiny/searchain"
    assert own.runs == {"hotpotqa": ("hotpotqa/tiny/searchain",) * 2}
    assert theirs.values["hotpotqa"] == 0.0633


def test_any_system_is_compared_with_itself_without_retrieval_on_any_dataset() -> None:
    runs = [
        run("plan-and-solve", "++", dataset="jsonl", retrieve=True, rounds=1),
        run("plan-and-solve", "++", dataset="jsonl", retrieve=False, rounds=2, named={"variation": "other"}),
        run("plan-and-solve", "+-", dataset="jsonl", retrieve=False, rounds=1, named={"variation": "alone"}),
        run("ircot", "++", dataset="jsonl"),
    ]
    (row,) = tables(*runs)["searchain-misled"].rows
    assert (row.values["label"], row.values["jsonl"]) == ("plan-and-solve", 0.0)
    assert row.values["without"] == "jsonl/tiny/plan-and-solve/alone"


def test_react_is_compared_with_a_chain_of_thought() -> None:
    runs = [run("react", "+-", retrieve=True), run("chain-of-thought", "++"), run("dsp", "+", dataset="musique")]
    table = tables(*runs)["searchain-misled"]
    assert [row.values.get("hotpotqa") for row in rows(table, "React")] == [0.5, 0.1768]
    assert [row.published for row in rows(table, "DSP")] == ["table 4"]


def test_without_a_right_answer_nothing_is_misled() -> None:
    runs = [run("searchain", "+"), run("searchain", "-", retrieve=False)]
    assert "searchain-misled" not in tables(*runs)


@given(st.text("+-0", min_size=1, max_size=8), st.text("+-0", min_size=1, max_size=8))
def test_the_share_that_is_misled_is_counted_over_questions_answered_in_both(first: str, second: str) -> None:
    figures = own_figures(
        source("searchain").table("misled"), [run("searchain", first), run("searchain", second, retrieve=False)]
    )
    pairs = [both for both in zip(first, second, strict=False) if "0" not in both]
    right = [with_ for with_, without in pairs if without == "+"]
    assert [figure.value for figure in figures] == ([right.count("-") / len(right)] if right else [])


@each_case(("of", "table"), TABLES, ids=[f"{source_.name}-{table.name}" for source_, table in TABLES])
def test_published_figures_are_shares_by_known_metrics_of_known_settings(of: Source, table: PublishedTable) -> None:
    assert of.cited
    assert {fact(table.metric, dataset) for dataset in table.datasets} <= METRICS.keys()
    for row in table.rows:
        assert row.scores.keys() <= set(table.datasets)
        assert all(0 < score < 1 for score in row.scores.values())
        for method in (*row.methods, *row.without):
            if method.system in NAMES:
                msgspec.convert(method.settings, find_system(method.system).settings)


def test_names_of_tables_are_their_own() -> None:
    names = [f"{source_.name}-{table.name}" for source_, table in TABLES]
    assert len(set(names)) == len(names)


def test_ircots_rows_are_those_of_its_own_protocol() -> None:
    values = [row.scores for table in ircot().tables for row in table.rows]
    assert values == [printed_means(row) for name in ("readers", "without_reader") for row in LAYOUTS[name].rows]
    reading: dict[str, Any] = {"reading": {"reader": "cot"}}
    figures = own_figures(ircot().tables[0], [run("ircot", "+", corpus="c", **reading)])
    assert [figure.label for figure in figures] == ["IRCoT, CoT"]


def test_a_fact_may_be_of_a_dataset_or_of_the_others() -> None:
    assert fact("all", "nq") == "all"
    assert fact({"nq": "one", "others": "rest"}, "nq") == "one"
    assert fact({"nq": "one", "others": "rest"}, "hotpotqa") == "rest"
    assert fact({"nq": "one"}, "hotpotqa") == ""


def test_rows_may_have_other_columns_than_datasets() -> None:
    row = PublishedRow(label="A", where="table 9", methods=(Method(system="a"),), scores={"nq": 0.5, "fever": 0.25})
    table = PublishedTable(
        name="t", heading="T", where="table 9", metric="answer_em", datasets=("nq", "fever"), rows=(row,)
    )
    (made,) = table_rows(table, "m", {"fever": "facts"})
    assert made.values == {"label": "A", "model": "m", "nq": 0.5, "facts": 0.25}
    assert made.published == "table 9"
