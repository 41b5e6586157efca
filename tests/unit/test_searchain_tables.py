"""The tables of Search-in-the-Chain for a dozen made-up trees, and its published figures against the paper's text."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cotrail.core.prompts import Prompt, Written, assistant, user
from cotrail.evaluation.experiments.report_tables import ReportTable, TableRow
from cotrail.evaluation.experiments.searchain.paper import LAYOUTS, build_tables
from cotrail.evaluation.experiments.searchain.runs import (
    Citations,
    Effect,
    Efficiency,
    SearChainRun,
    Searched,
    Sources,
    WordCounts,
    citations,
    effect,
    efficiency,
    nodes_by_hops,
    sources,
    words_of,
)
from cotrail.services.results.reports.sheets import sheet
from cotrail.systems.searchain.chain_of_query import FormatViolation
from tests.unit.made_trees import mark, tree

PAPER = Path(__file__).parents[2].parent / "shared" / "papers" / "search-in-the-chain.txt"

RETRIEVING = (
    Searched(key="a", score=1.0, tree=tree("mm")),
    Searched(key="b", score=1.0, tree=tree("mc- dmm")),
    Searched(key="c", score=0.0, tree=tree("f-- df- dmm")),
    Searched(key="d", score=0.0, tree=tree("mmm")),
    Searched(key="e", score=0.0, tree=tree("mc dm")),
    Searched(key="f", score=1.0, tree=tree("c-- dc- dcm")),
    Searched(key="g", score=None),
    Searched(key="h", score=1.0, tree=tree("m")),
)
"""Of their 34 nodes 14 come from the model, 5 are corrected, 2 completed, 6 duplicates, and 7 are behind feedback."""

AGAIN = (tree("mf mf m", path=(0, 3, 4)), tree("f f- d", path=(1,)), tree("f", path=(0,)))
"""Trees of ten nodes, in which the same unsolved query was looked at again: three queries, one and one."""

ALONE = (
    Searched(key="a", score=1.0, hops=2, tree=tree("--")),
    Searched(key="b", score=0.0, hops=2, tree=tree("----")),
    Searched(key="c", score=0.0, hops=3, tree=tree("-----")),
    Searched(key="d", score=1.0, hops=4, tree=tree("------")),
    Searched(key="e", score=1.0, hops=4, tree=tree("---")),
    Searched(key="f", score=0.0, tree=tree("-------")),
    Searched(key="g", score=1.0, hops=2),
)
"""The same questions without retrieval; g has no tree, and h was not asked."""


def run(
    questions: Sequence[Searched], variation: str = "", *, dataset: str = "hotpotqa", overlap: bool = False
) -> SearChainRun:
    return SearChainRun(
        id=f"{dataset}/{variation}",
        dataset=dataset,
        model="tiny-1b",
        variation=variation,
        questions=tuple(questions),
        scores_overlap=overlap,
    )


BOTH = (run(RETRIEVING), run(ALONE, "without-retrieval"))


def table(runs: Sequence[SearChainRun], name: str) -> ReportTable:
    (found,) = (each for each in build_tables(runs) if each.name == name)
    return found


def own(of: ReportTable) -> list[Mapping[str, Any]]:
    return [row.values for row in of.rows if not row.published]


def names(runs: Sequence[SearChainRun]) -> list[str]:
    return [each.name for each in build_tables(runs)]


def shown(runs: Sequence[SearChainRun], name: str, label: str) -> list[tuple[str, ...]]:
    """The rows of that label as they are printed, each with what is said about it."""
    return [(*row.cells, row.remark) for row in sheet(table(runs, name)).rows if row.cells[0] == label]


def test_sources_are_counted_by_the_nodes_of_the_paths() -> None:
    assert sources(each.tree for each in RETRIEVING if each.tree) == Sources(model=14, corrected=5, completed=2)


def test_a_query_that_was_looked_at_again_is_one_source() -> None:
    assert sources(AGAIN) == Sources(model=2, corrected=0, completed=3)


def test_a_node_for_which_nothing_was_found_has_no_source() -> None:
    assert sources([tree("m-", path=(0, 1))]) == Sources(model=1, corrected=0, completed=0)


def test_a_tree_without_retrieval_has_no_sources() -> None:
    assert sources([tree("---")]).nodes == 0
    assert "sources" not in names([run(ALONE, "without-retrieval")])


def test_the_effect_of_retrieval_is_that_on_the_questions_that_have_an_answer_with_it_and_without() -> None:
    assert effect(RETRIEVING, ALONE) == Effect(
        questions=6,  # a to f
        without=3 / 6,  # a, d, e
        helped=4,  # b, c, e, f
        helped_without=1 / 4,  # e
        helped_with=2 / 4,  # b, f
        right=3,  # a, d, e
        misled=2,  # d, e
    )


def test_without_a_pair_there_is_no_effect_and_without_help_no_score_of_it() -> None:
    assert effect(RETRIEVING, ()) is None
    assert effect((), ALONE) is None
    found = effect(RETRIEVING[:1], ALONE)
    assert found is not None
    assert (found.helped, found.helped_without, found.helped_with) == (0, None, None)


def test_nodes_are_counted_by_hops_where_the_dataset_tells_them() -> None:
    assert nodes_by_hops(ALONE) == {2: (2 + 4) / 2, 3: 5, 4: (6 + 3) / 2}
    assert nodes_by_hops(RETRIEVING) == {}


def test_words_and_interactions_are_means_over_the_questions_with_an_answer() -> None:
    questions = (
        Searched(key="a", score=1.0, tree=tree("mc dm"), words=WordCounts(read=330, read_again=700, written=60)),
        Searched(key="b", score=0.0, tree=tree("m"), words=WordCounts(read=310, read_again=310, written=30)),
        Searched(key="c", score=None, words=WordCounts(read=310, read_again=310, written=0)),
    )
    assert efficiency(questions) == Efficiency(questions=2, read=320, read_again=505, written=45, rounds=1.5)
    assert efficiency(questions[2:]) is None


def test_a_prompt_counts_once_and_feedback_where_it_is_added() -> None:
    asked = Prompt(turns=(user("Construct a chain for: ", "Who built it?"),))
    told = asked.add(assistant(Written("Query 1: Who? Ada.")), user("The answer should be Eve."))
    traced = Prompt(turns=(user("Write the final content."),))
    # 4 + 3; then 4 of the model's and 5; then 4.
    words = words_of([asked, told, traced], ["Query 1: Who? Ada.", "Eve it is.", "Eve [1]."])
    assert words == WordCounts(read=7 + 5 + 4, read_again=7 + (7 + 4 + 5) + 4, written=4 + 3 + 2)
    assert words_of([], []) == WordCounts(read=0, read_again=0, written=0)


CITED = (
    Searched(
        key="a",
        score=1.0,
        tree=tree("mcm", path=(0, 1), final="Ada [1] built it [1][2].", marks=[mark("Ada", 0), mark("built it", 0, 1)]),
        gold=frozenset({"d0"}),
    ),
    Searched(key="b", score=1.0, tree=tree("mm", path=(0, 1), final="No marks."), gold=frozenset({"d0"})),
    Searched(key="c", score=0.0, tree=tree("m", path=(0,), final="Rome [1].", marks=[mark("Rome", 0)])),
    Searched(key="d", score=0.0, tree=tree("f", path=(0,))),
    Searched(key="e", score=None),
    Searched(
        key="f",
        score=1.0,
        tree=replace(
            tree("m", path=(0,), final="Ada built it.", marks=[mark("Ada built it.", 0)]),
            oddities=(FormatViolation(round=2, what="no marks", text="Ada built it."),),
        ),
        gold=frozenset({"d0"}),
    ),
)


def test_marks_are_counted_by_content_by_document_and_by_node() -> None:
    # The dataset of c publishes no gold paragraphs, d has no final content, and the model marked nothing in f.
    assert citations(CITED) == Citations(contents=4, marked=2, references=3, gold=2, path=7, named=3)


def test_each_table_has_own_rows_before_the_papers_of_that_name() -> None:
    assert names(BOTH) == ["runs", "performance", "sources", "effect", "misled", "steps", "marks"]
    assert shown(BOTH, "performance", "SearChain") == [
        ("SearChain", "tiny-1b", "50.00", ""),
        ("SearChain", "gpt-3.5-turbo", "56.91", "published, table 1"),
    ]
    assert shown(BOTH, "performance", "SearChain w/o IR")[0] == ("SearChain w/o IR", "tiny-1b", "57.14", "")
    assert shown(BOTH, "sources", "HotpotQA") == [
        ("HotpotQA", "tiny-1b", "66.67", "23.81", "9.52", "21", "hotpotqa/", ""),
        ("HotpotQA", "gpt-3.5-turbo", "74.56", "20.94", "4.50", "-", "-", "published, table 2"),
    ]
    assert shown(BOTH, "effect", "HotpotQA")[0] == (
        *("HotpotQA", "tiny-1b", "50.00", "25.00", "50.00", "6", "4", "hotpotqa/", ""),
    )
    assert shown(BOTH, "misled", "SearChain")[0] == ("SearChain", "tiny-1b", "66.67", "")
    assert shown(BOTH, "steps", "SearChain w/o IR") == [
        ("SearChain w/o IR", "tiny-1b", "3.00", "5.00", "4.50", "hotpotqa/without-retrieval", ""),
        ("SearChain w/o IR", "gpt-3.5-turbo", "4.16", "4.66", "5.06", "-", "published, table 5"),
    ]


def test_a_method_has_one_row_for_all_datasets() -> None:
    other = run(RETRIEVING[:1], dataset="my own questions")
    (row,) = own(table([*BOTH[:1], other], "performance"))
    assert (row["hotpotqa"], row["my own questions"]) == (0.5, 1.0)
    assert [column.title for column in table([*BOTH[:1], other], "performance").columns] == [
        *("Method", "Model", "HotpotQA", "my own questions")
    ]


def test_long_answers_are_not_right_or_wrong_so_retrieval_misleads_none() -> None:
    runs = [run(RETRIEVING, dataset="eli5", overlap=True), run(ALONE, "without-retrieval", dataset="eli5")]
    assert "effect" in names(runs)
    assert "misled" not in names(runs)


def test_ablations_are_rows_of_the_first_table_and_not_of_those_about_the_whole_method() -> None:
    runs = [run(RETRIEVING, "without-verification"), run(RETRIEVING, "without-completion")]
    assert names(runs) == ["runs", "performance", "marks"]
    assert [row["label"] for row in own(table(runs, "performance"))] == [
        *("SearChain w/o Verification", "SearChain w/o Completion")
    ]


def test_efficiency_stands_beside_both_of_the_papers_versions() -> None:
    words = WordCounts(read=330, read_again=700, written=60)
    runs = [run([Searched(key="a", score=1.0, tree=tree("mc dm"), words=words)])]
    found = shown(runs, "efficiency", "SearChain")
    assert found[0] == ("SearChain", "tiny-1b", "330", "700", "60", "2.00", "-", "1", "hotpotqa/", "")
    assert found[1][2:6] == ("390", "-", "189", "2.21")
    assert found[1][-1] == "published, table 6, WWW 2024"


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text isn't beside the repository")
@pytest.mark.parametrize(
    ("number", "rows"),
    [
        (1, LAYOUTS["performance"].rows),
        (2, LAYOUTS["sources"].rows),
        (4, LAYOUTS["misled"].rows),
        (5, LAYOUTS["steps"].rows),
    ],
)
def test_the_published_figures_are_those_of_the_papers_tables(number: int, rows: tuple[TableRow, ...]) -> None:
    rows = tuple(row for row in rows if row.published == f"table {number}")
    ours = [value for row in rows for value in row.values.values() if isinstance(value, float)]
    factor = 1 if number == 5 else 100
    assert [f"{value * factor:.2f}" for value in ours] == printed(number)


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text isn't beside the repository")
def test_tables_that_are_turned_or_have_whole_numbers_are_the_papers_too() -> None:
    columns = ("without", "helped_without", "helped_with")
    rows: list[Mapping[str, Any]] = [row.values for row in LAYOUTS["effect"].rows]
    assert [f"{100 * row[name]:.2f}" for name in columns for row in rows] == printed(3)
    ours = [row.values for row in LAYOUTS["efficiency"].rows if row.published.startswith("table 6")]
    assert [f"{row['rounds']:.2f}" for row in ours] == printed(6)
    assert [(row["read"], row["written"]) for row in ours] == [(401, 63), (1759, 155), (390, 189)]


def printed(number: int) -> list[str]:
    """The numbers with two decimals above the caption of a table."""
    before, _, _ = PAPER.read_text("utf-8").partition(f"\nTable {number}: ")
    return re.findall(r"\d+\.\d\d", before.rstrip().rpartition("\n\n")[2])
