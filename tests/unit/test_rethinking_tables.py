"""The tables of Rethinking with Retrieval for made-up runs, and its published figures against the paper's text."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.evaluation.experiments.report_tables import ReportTable, TableRow
from cotrail.evaluation.experiments.rethinking.runs import (
    Answered,
    Method,
    RethinkingRun,
    faithfulness_of,
    growth,
    method_of,
)
from cotrail.evaluation.experiments.rethinking.tables import (
    CHAIN_ALONE,
    LAYOUTS,
    METHODS,
    build_tables,
    chains_chart,
    comparison,
)
from cotrail.faithfulness.tasks import Task
from cotrail.faithfulness.weighing import ChosenFact, Vote, WeighedChain, WeighedSentence, Weighing, infer
from cotrail.services.results.reports.documents import report_page
from cotrail.services.results.reports.figures import svg_of
from cotrail.services.results.reports.sheets import sheet
from cotrail.systems.registry import find_system
from cotrail.systems.spec import SystemSpec
from tests.cases import each_case

PAPER = Path(__file__).parents[2].parent / "shared" / "papers" / "rethinking-with-retrieval.txt"

DATASETS: Mapping[Task, str] = {"commonsense": "strategyqa", "temporal": "tempquestions", "tabular": "infotabs"}

Chain = tuple[str, float]
"""A prediction and its faithfulness, which is its only sentence's entailment too."""


def weighing(
    chains: Sequence[Chain], *, function: int = 1, voting: bool = True, facts: Sequence[float] = ()
) -> Weighing:
    inferred = infer([Vote(prediction, f) for prediction, f in chains], voting=voting)
    return Weighing(
        function=function,
        chains=tuple(
            WeighedChain(
                number=number,
                text=f"A fact. So the answer is {prediction}.",
                prediction=prediction,
                faithfulness=f,
                sentences=(
                    WeighedSentence(text="A fact.", evidence="d", similarity=0, entailment=f, contradiction=0, score=f),
                ),
            )
            for number, (prediction, f) in enumerate(chains)
        ),
        predictions=inferred.predictions,
        chosen=inferred.chosen,
        facts=tuple(
            ChosenFact(text="A fact.", replaces="", origin="kept", entailment=each, contradiction=0) for each in facts
        ),
    )


def made(
    system: str,
    answers: Sequence[str | None],
    *,
    task: Task = "commonsense",
    right: str = "yes",
    weighings: Sequence[Weighing] = (),
    **settings: Any,
) -> RethinkingRun:
    """A run with these answers, of which those like `right` are right."""
    given = [*weighings, *([None] * (len(answers) - len(weighings)))]
    told = "-".join([system, *map(str, settings.values())])
    return RethinkingRun(
        id=f"{told}-{task}",
        method=msgspec.convert({"system": system, **settings}, Method),
        task=task,
        dataset=DATASETS[task],
        model="tiny-1b",
        questions=tuple(
            Answered(key=f"q{number}", answers=(right,), answer=answer, weighing=each)
            for number, (answer, each) in enumerate(zip(answers, given, strict=True))
        ),
    )


def rethinking(
    answers: Sequence[str | None], *, knowledge: Sequence[str] = ("corpus",), **changes: Any
) -> RethinkingRun:
    return made("rethinking", answers, knowledge=tuple(knowledge), **changes)


def table(runs: Sequence[RethinkingRun], name: str) -> ReportTable:
    (found,) = (each for each in build_tables(runs) if each.name == name)
    return found


def shown(of: ReportTable) -> list[tuple[str, ...]]:
    """The rows as they are printed, each with what is said about it."""
    return [(*line.cells, line.remark) if line.remark else line.cells for line in sheet(of).rows]


def own(of: ReportTable, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values.get(name) for name in columns) for row in of.rows if not row.published]


def names(runs: Sequence[RethinkingRun]) -> list[str]:
    return [each.name for each in build_tables(runs)]


def test_the_first_table_has_every_run_with_its_accuracy() -> None:
    runs = [
        made("self-consistency", ["yes", "no", "", None], chains=9),
        made("rethinking", ["Tim Pawlenty."], task="temporal", right="tim pawlenty", query="question", voting=False),
        made("ircot", ["true", "maybe"], task="tabular", right="true"),
    ]
    of = table(runs, "runs")
    rows = own(of, "label", "settings", "task", "questions", "answered", "accuracy", "adjusted")
    assert rows == [
        ("Self-consistency", "9 chains", "Commonsense", 4, 3, 0.25, 0.375),
        ("Rethinking with retrieval", "no voting, by question", "Temporal", 1, 1, 1.0, None),
        ("ircot", None, "Tabular", 2, 2, 0.5, 0.75),
    ]


def test_methods_stand_beside_the_published_ones_for_the_tasks_that_there_are() -> None:
    runs = [
        rethinking(["yes", "yes", "no"]),
        made("zero-shot", ["yes", "no"]),
        made("few-shot", ["no"], task="temporal"),
    ]
    assert shown(table(runs, "methods"))[:4] == [
        ("Zero-shot prompting", "tiny-1b", "-", "50.00", "-", "2", "zero-shot-commonsense"),
        ("Zero-shot prompting", "GPT-3", "-", "58.08", "28.40", "-", "-", "published, table 1"),
        ("Few-shot prompting", "tiny-1b", "-", "-", "0.00", "1", "few-shot-temporal"),
        ("Few-shot prompting", "GPT-3", "-", "63.32", "29.59", "-", "-", "published, table 1"),
    ]
    assert shown(table(runs, "methods"))[-2][3] == "66.67"


@each_case(
    "changes",
    [
        {"variant": "selection"},
        {"voting": False},
        {"query": "question"},
        {"knowledge": ("evidence",)},
        {"knowledge": ("table",), "task": "tabular"},
    ],
)
def test_only_the_paper_main_approach_is_in_the_table_of_methods(changes: dict[str, Any]) -> None:
    assert "methods" not in names([rethinking(["yes"], **changes)])


def test_retrieval_by_question_stands_beside_retrieval_by_sentence_and_the_misprint_is_told() -> None:
    runs = [
        rethinking(["true"], task="tabular", right="true"),
        rethinking(["yes"], query="question"),
        rethinking(["ink"], task="temporal", right="ink", query="sentence"),
    ]
    of = table(runs, "retrieval")
    assert own(of, "label", "commonsense", "temporal", "tabular") == [
        ("Query-based", 1.0, None, None),
        ("Decomposition-based", None, None, 1.0),
        ("Decomposition-based", None, 1.0, None),
    ]
    assert shown(of)[1] == ("Query-based", "GPT-3", "-", "73.36", "36.69", "-", "-", "-", "published, table 3")
    assert 'heads the published temporal column of this table "Tabular"' in " ".join(of.notes)


def test_tabular_runs_are_told_apart_by_what_they_are_given_to_know() -> None:
    def run(*knowledge: str) -> RethinkingRun:
        return rethinking(["true"], task="tabular", right="true", knowledge=knowledge)

    runs = [run("table", "wordnet"), run("table"), run("conceptnet"), run("corpus")]
    of = table(runs, "knowledge")
    assert own(of, "label", "knowledge") == [
        ("External", "conceptnet"),
        ("Background", "table"),
        ("Background + External", "table, wordnet"),
    ]
    assert [row.values["tabular"] for row in of.rows if row.published] == [0.7992, 0.8475, 0.8483]


ON_EVIDENCE: dict[str, Any] = {"knowledge": ("evidence",), "evidence": "paragraphs", "function": 3}


def test_variants_have_accuracy_and_faithfulness() -> None:
    chains = (("yes", 0.75), ("no", 0.25))
    facts = weighing(chains, function=3, facts=(0.5, 1.0))
    basic = weighing(chains, function=3, voting=False)
    runs = [
        rethinking(["yes"], **ON_EVIDENCE, variant="generation", inference="direct", weighings=[facts]),
        rethinking(["yes", "no"], **ON_EVIDENCE, voting=False, weighings=[basic, basic]),
        rethinking(["yes"], **ON_EVIDENCE, chains=1, temperature=0.0, weighings=[weighing((("yes", 0.5),))]),
        made("chain-of-thought", ["no"]),
    ]
    of = table(runs, "variants")
    assert own(of, "label", "accuracy", "faithfulness") == [
        ("CoT prompting", 1.0, 0.5),
        ("CoT prompting", 0.0, None),
        (CHAIN_ALONE, 0.5, 0.5),
        ("Basic (w/o voting)", 0.5, 0.75),
        ("Variant II", 1.0, 0.75),
    ]
    assert [row.published for row in of.rows if row.values["label"] == "Basic (with voting)"] == ["section 5.3"]


@each_case(
    "changes",
    [
        {"knowledge": ("corpus",)},
        {"knowledge": ("evidence", "corpus")},
        {"evidence": "pages"},
        {"function": 1},
        {"query": "question"},
        {"variant": "generation", "inference": ""},
    ],
)
def test_runs_that_differ_from_section_5_3_are_not_among_the_variants(changes: dict[str, Any]) -> None:
    assert "variants" not in names([rethinking(["yes"], **{**ON_EVIDENCE, "voting": False, **changes})])


def test_variants_of_one_s_own_need_more_than_a_chain_of_thought() -> None:
    assert "variants" not in names([made("chain-of-thought", ["no"])])


def test_inference_with_facts_is_told_where_a_run_generates_some_or_is_given_them() -> None:
    def generated(inference: str, **changes: Any) -> RethinkingRun:
        return rethinking(["yes"], **{**ON_EVIDENCE, "variant": "generation", "inference": inference, **changes})

    runs = [
        made("zero-shot", ["yes"]),
        generated("cot"),
        replace(generated("unifiedqa"), inferrer="qa-3b"),
        generated(""),
        generated("cot", evidence="pages"),
    ]
    given = [
        replace(made("chain-of-thought", ["yes"]), dataset="strategyqa-facts"),
        replace(made("zero-shot", ["no"], layout="unifiedqa"), dataset="strategyqa-facts"),
    ]
    of = table([*runs, *given], "inference")
    assert own(of, "label", "model", "accuracy") == [
        ("Empty facts", "tiny-1b (zero-shot)", 1.0),
        ("Gold facts", "tiny-1b (CoT)", 1.0),
        ("Gold facts", "tiny-1b (UnifiedQA's form)", 0.0),
        ("Generated facts", "tiny-1b (CoT)", 1.0),
        ("Generated facts", "qa-3b (UnifiedQA's form)", 1.0),
    ]
    assert len(of.rows) == 5 + 9
    assert names(given) == ["runs", "inference", "contrasts"]
    assert "inference" not in names(runs[:1])


def configured(spec: SystemSpec, settings: dict[str, Any]) -> Method:
    return method_of(spec.name, msgspec.convert(settings, spec.settings))


def test_a_method_has_what_its_settings_leave_to_the_task() -> None:
    found = configured(find_system("rethinking"), {"task": "temporal", "voting": False})
    assert (found.voting, found.knowledge, found.chains, found.function) == (False, ("wikidata",), 10, 2)
    assert (found.evidence, found.inference, found.layout, found.is_greedy) == ("", "", "qa", False)
    found = configured(
        find_system("rethinking"), {"knowledge": ["evidence"], "variant": "selection", "inference": "unifiedqa"}
    )
    assert (found.is_on_evidence, found.inference) == (True, "unifiedqa")
    assert not configured(find_system("rethinking"), {"knowledge": ["evidence"], "evidence": "pages"}).is_on_evidence
    assert configured(find_system("self-consistency"), {"task": "commonsense"}).chains == 9
    assert configured(find_system("ircot"), {"max_sentences": 8}) == Method(system="ircot")


def test_runs_on_ones_own_questions_are_in_no_table_with_published_figures() -> None:
    others = made("chain-of-thought", ["yes"], task="temporal")
    mine = [replace(each, dataset="jsonl") for each in (rethinking(["yes"]), made("zero-shot", ["yes"]))]
    assert not any(row.published for each in build_tables(mine) for row in each.rows)
    assert "contrasts" in names(mine)
    assert "published" not in comparison(mine).summary
    assert any("in no table with published figures" in note for note in table(mine, "runs").notes)
    mixed = table([*mine, others], "methods")
    assert [row.values["run"] for row in mixed.rows if not row.published] == [others.id]
    assert "tempquestions" in comparison([*mine, others]).summary.lower()


def test_two_runs_on_the_same_questions_are_compared() -> None:
    runs = [
        rethinking(["yes"] * 6),
        made("self-consistency", ["no"] * 6),
        made("zero-shot", ["true"], task="tabular", right="true"),
    ]
    columns = ("run", "against", "questions", "ours", "theirs", "p_value")
    assert own(table(runs, "contrasts"), *columns) == [
        ("rethinking-('corpus',)-commonsense", "self-consistency-commonsense", 6, 6, 0, 2 / 64)
    ]
    cut = [replace(runs[0], unasked=4), *runs[1:]]
    assert [row[-1] for row in own(table(cut, "contrasts"), *columns)] == [None]
    assert "There is no p where a budget or a person ended" in table(cut, "contrasts").notes[0]
    assert table(runs, "contrasts").notes == ()


def test_fewer_chains_are_weighed_as_all_of_them_are() -> None:
    first = weighing([("no", 0.1), ("yes", 0.9), ("no", 0.2)])
    second = weighing([("yes", 0.5), ("", 0.0), ("no", 0.4)])
    run = rethinking(["yes", "yes"], weighings=[first, second])
    grown = growth(run)
    assert grown is not None
    assert grown.questions == 2
    assert grown.voted == (0.5, 0.5, 0.5)
    assert grown.faithful == (0.5, 1.0, 1.0)
    assert own(table([run], "chains"), "chains", "voted", "faithful", "questions") == [
        (1, 0.5, 0.5, 2),
        (2, 0.5, 1.0, 2),
        (3, 0.5, 1.0, 2),
    ]


predictions = st.sampled_from(["yes", "no", ""])
chains = st.lists(st.tuples(predictions, st.floats(-2, 2, allow_nan=False)), min_size=4, max_size=4)


@given(st.lists(chains, min_size=1, max_size=6), st.booleans())
def test_all_chains_give_the_answers_that_the_run_gave(questions: list[list[Chain]], voting: bool) -> None:  # noqa: FBT001
    answers = [infer([Vote(*chain) for chain in each], voting=voting).prediction for each in questions]
    weighings = [weighing(each, voting=voting) for each in questions]
    grown = growth(rethinking(answers, weighings=weighings, voting=voting))
    assert grown is not None
    assert len(grown.voted) == len(grown.faithful) == 4
    assert grown.faithful[-1] == pytest.approx(answers.count("yes") / len(answers))
    assert (
        grown.faithful[0] == grown.voted[0] == pytest.approx(sum(q[0][0] == "yes" for q in questions) / len(questions))
    )


def test_temporal_predictions_that_differ_in_their_form_are_one() -> None:
    run = rethinking(
        ["the ink"], task="temporal", right="Ink", weighings=[weighing([("pen", 0.1), ("Ink", 0.1), ("the ink.", 0.1)])]
    )
    grown = growth(run)
    assert grown is not None
    assert grown.voted == (0.0, 0.0, 1.0)


def test_questions_that_are_not_finished_take_no_part_in_the_effect_of_chains() -> None:
    run = rethinking(["yes", None], weighings=[weighing([("yes", 0.1), ("yes", 0.1)])])
    grown = growth(run)
    assert grown is not None
    assert (grown.questions, grown.voted) == (1, (1.0, 1.0))


def test_votes_alone_have_no_faithfulness_and_one_line() -> None:
    run = made("self-consistency", ["yes"], weighings=[weighing([("yes", 1.0), ("no", 1.0)], function=0)])
    assert faithfulness_of(run) is None
    plot = chains_chart([run])
    assert plot is not None
    assert [series.system for series in plot.panels[0].series] == ["self-consistency"]
    assert "faithful" not in [column.name for column in table([run], "chains").columns]


def test_runs_without_several_chains_have_no_figure() -> None:
    assert chains_chart([made("zero-shot", ["yes"])]) is None
    assert chains_chart([rethinking(["yes"], weighings=[weighing([("yes", 0.5)])])]) is None


def test_the_page_and_the_figure_hold_what_was_found() -> None:
    runs = [rethinking(["yes"], weighings=[weighing([("no", 0.1), ("yes", 0.9)])]), made("zero-shot", ["no"])]
    report = comparison(runs)
    drawn = ET.fromstring(svg_of(report.plots[0]))
    texts = {"".join(each.itertext()).strip() for each in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {"Chains", "Accuracy (%)", "self-consistency", "rethinking", "1", "2"} <= texts
    text = report_page("Rethinking", report)
    assert "<svg" in text
    assert "published, table 1" in text
    assert "77.73" in text


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text isn't beside the repository")
@each_case(
    ("number", "rows"),
    [
        (1, LAYOUTS["methods"].rows),
        (3, LAYOUTS["retrieval"].rows),
        (4, LAYOUTS["knowledge"].rows),
        (5, LAYOUTS["variants"].rows),
        (7, LAYOUTS["inference"].rows),
    ],
)
def test_the_published_figures_are_those_of_the_papers_tables(number: int, rows: tuple[TableRow, ...]) -> None:
    before, _, _ = PAPER.read_text("utf-8").partition(f"\nTable {number}: ")
    block = before.rstrip().rpartition("\n\n")[2]
    printed = re.findall(r"\d+\.\d\d", block)
    ours = [f"{100 * value:.2f}" for row in rows if row.published == f"table {number}" for value in numbers(row)]
    assert ours == printed


def numbers(row: TableRow) -> list[float]:
    return [value for value in row.values.values() if isinstance(value, float)]


def test_every_published_row_of_the_methods_is_one_of_the_systems() -> None:
    assert [row.values["label"] for row in LAYOUTS["methods"].rows] == list(METHODS.values())
